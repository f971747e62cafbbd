# SPDX-License-Identifier: MIT
"""A package that extends the daemon and fails is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from burst import log
from burst.config import parse
from burst.daemon import Daemon
from burst.errors import BurstError
from burst.extensions import installed
from tests.fakes import FakeLead, WatchedLead

CODE = """
import os


def fail_in(part):
    if os.environ["FAILS_IN"] == part:
        raise ValueError("odd")


def routes(state):
    fail_in("routes")
    return []


class Running:
    def __init__(self, host):
        fail_in("make")

    def methods(self):
        fail_in("methods")
        return {}

    def start(self):
        fail_in("start")

    def close(self):
        fail_in("close")
"""
POINTS = """
[burst.daemon]
faulty = burst_faulty:Running

[burst.http_routes]
faulty = burst_faulty:routes
"""
SERVING = {"http": {"listen": "127.0.0.1:0"}}


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "burst_faulty.py").write_text(CODE)
    info = tmp_path / "burst_faulty-1.dist-info"
    info.mkdir()
    about = "Metadata-Version: 2.1\nName: burst-faulty\nVersion: 1"
    (info / "METADATA").write_text(about)
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    yield
    installed.cache_clear()


def daemon_of(lead: FakeLead) -> Daemon:
    log.start("text")
    return Daemon(lambda: parse(SERVING, "x"), Path("x.toml"), lambda _: lead)


@pytest.mark.parametrize("part", ["make", "methods", "start", "routes"])
def test_one_that_fails_as_the_daemon_starts_ends_it_with_its_name(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAILS_IN", part)
    of_package = r"^burst\.\w+: faulty of package burst-faulty failed: ValueError"
    with pytest.raises(BurstError, match=of_package):
        daemon_of(FakeLead()).run()
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert f'fail_in("{part}")' in told


def test_one_that_fails_at_the_end_keeps_nothing_else_from_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAILS_IN", "close")
    lead = WatchedLead()
    daemon = daemon_of(lead)
    lead.at_observe = daemon.stop
    daemon.run()
    assert lead.closed
    assert (
        "faulty of package burst-faulty failed: ValueError('odd')"
        in capsys.readouterr().err
    )
