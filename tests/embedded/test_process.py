# SPDX-License-Identifier: MIT
"""A broker's own directory, and how it is stopped."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_embedded.process import LONGEST_PATH, private_directory, stop_signals

from burst.errors import BurstError, ConfigError, LeadError
from tests.embedded_instance import short_directory


@pytest.fixture
def base() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


def refused(path: Path, why: str, error: type[BurstError] = ConfigError) -> None:
    """See a directory refused."""
    with pytest.raises(error, match=why), private_directory(path):
        pass


def test_the_directory_is_made_private(base: Path) -> None:
    with private_directory(base / "a" / "b") as directory:
        assert directory == base / "a" / "b"
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_relative_path_becomes_absolute(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base)
    with private_directory(Path("r")) as directory:
        assert directory == base / "r"


def test_two_brokers_do_not_share_one(base: Path) -> None:
    with private_directory(base / "r"):
        refused(base / "r", "another broker uses it", LeadError)
    with private_directory(base / "r"):
        pass


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701])
def test_one_that_others_can_enter_is_refused(base: Path, mode: int) -> None:
    (base / "r").mkdir()
    (base / "r").chmod(mode)
    refused(base / "r", f"is not private.*chmod 700 {base}/r")


def test_what_is_no_directory_is_refused(base: Path) -> None:
    (base / "file").touch()
    refused(base / "file" / "r", "cannot be made")


def test_a_path_too_long_for_a_socket_is_refused(base: Path) -> None:
    room = LONGEST_PATH - len(f"{base}//control")
    with private_directory(base / ("x" * room)):
        pass
    refused(base / ("x" * (room + 1)), r"is 108 bytes.*shorter --rundir")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_seen_as_a_descriptor(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stop:
        assert not select.select([stop], [], [], 0)[0]
        os.kill(os.getpid(), number)
        assert select.select([stop], [], [], 30)[0]
    assert signal.getsignal(number) is before
