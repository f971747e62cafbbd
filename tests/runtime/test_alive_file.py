# SPDX-License-Identifier: MIT
"""A daemon that goes on shows it by the time of a file."""

import math
import os
import time
from pathlib import Path

import pytest

from burst import log
from burst.config import parse
from burst.daemon import Daemon
from burst.errors import ConfigError, LeadError, LeadGone
from burst.lead import Lead
from burst.runtime.daemon_state import AliveFile
from tests.fakes import FakeLead, WatchedLead

OLD = 1000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alive"


def is_touched(path: Path) -> bool:
    """Tell whether it was touched since this was asked last."""
    fresh = path.exists() and path.stat().st_mtime != OLD
    path.touch()
    os.utime(path, (OLD, OLD))
    return fresh


class ForgottenLead(FakeLead):
    """Removes the file when it is asked who it is."""

    path: Path

    def identity(self):
        self.path.unlink()
        return super().identity()


class GoneLead(FakeLead):
    """Was there a moment ago."""

    def identity(self):
        raise LeadGone("nobody there")


def test_each_tick_touches_it(path: Path) -> None:
    lead, seen = WatchedLead(), []
    tables = {"daemon": {"alive": str(path), "cadence": "0.05s"}}
    daemon = Daemon(lambda: parse(tables, "x"), None, lambda _: lead)

    def at_observe() -> None:
        seen.append(is_touched(path))
        if len(seen) == 3:
            daemon.stop()

    lead.at_observe = at_observe
    daemon.run()
    assert seen == [True] * 3


def test_a_daemon_that_waits_for_its_lead_is_alive(path: Path) -> None:
    seen = []
    tables = {"daemon": {"alive": str(path)}, "deadlines": {"lead": "1h"}}

    def knock(_: str) -> Lead:
        seen.append(is_touched(path))
        if len(seen) == 2:
            daemon.stop()
        raise LeadGone("nobody there")

    daemon = Daemon(lambda: parse(tables, "x"), None, knock)
    daemon.run()
    assert seen == [True] * 2


def test_a_daemon_that_waits_for_its_address_is_alive(path: Path) -> None:
    lead = ForgottenLead()
    lead.path = path
    address = {"address": "127.0.0.1", "port": 1}
    tables = {"daemon": {"alive": str(path)}, "lead": address}
    with pytest.raises(ConfigError, match="could not reach the lead"):
        Daemon(lambda: parse(tables, "x"), None, lambda _: lead, 0.0).run()
    assert path.exists()


def test_a_daemon_that_deletes_what_a_lost_lead_left_is_alive_for_as_long(
    path: Path,
) -> None:
    """A probe that ended it would leave bursts that nobody deletes any more."""
    lead = WatchedLead()

    def be_gone() -> None:
        raise LeadGone("the connection is lost")

    lead.at_observe = be_gone
    tables = {
        "daemon": {"alive": str(path), "on_stop": "reap"},
        "deadlines": {"reap": "1h"},
    }
    leads = [GoneLead(), lead]
    daemon = Daemon(
        lambda: parse(tables, "x"), None, lambda _: leads.pop(), reconnect_limit=0.0
    )
    with pytest.raises(LeadError, match="did not come back"):
        daemon.run()
    assert path.stat().st_mtime > time.time() + 3000
    assert daemon._state.why_stuck() == ""
    AliveFile().touch(str(path), math.inf)
    assert path.stat().st_mtime < time.time() + 90_000


def test_without_the_setting_there_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    AliveFile().touch("")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_of_once(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.start("text")
    alive = AliveFile()
    for _ in range(3):
        alive.touch(str(path / "below"))
    assert capsys.readouterr().err.count("takes this daemon for dead") == 1
    path.mkdir()
    alive.touch(str(path / "below"))
    assert time.time() - (path / "below").stat().st_mtime < 60
