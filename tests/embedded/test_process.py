# SPDX-License-Identifier: MIT
"""A broker's own directory, and how it is stopped."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_embedded.process import private_directory, stop_signals

from burst.errors import ConfigError
from tests.embedded_instance import short_directory
from tests.support.waiting import HANG_S


@pytest.fixture
def base() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


def refused(path: Path, why: str) -> None:
    """See a directory refused."""
    with pytest.raises(ConfigError, match=why):
        private_directory(path)


def test_the_directory_is_made_private(base: Path) -> None:
    assert private_directory(base / "a" / "b") == base / "a" / "b"
    assert (base / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_relative_path_becomes_absolute(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base)
    assert private_directory(Path("r")) == base / "r"


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701])
def test_one_that_others_can_enter_is_refused(base: Path, mode: int) -> None:
    (base / "r").mkdir()
    (base / "r").chmod(mode)
    refused(base / "r", f"is not private.*chmod 700 {base}/r")


def test_what_is_no_directory_is_refused(base: Path) -> None:
    (base / "file").touch()
    refused(base / "file" / "r", "cannot be made")


def test_a_path_too_long_for_a_socket_is_refused(base: Path) -> None:
    room = 107 - len(f"{base}//control")
    private_directory(base / ("x" * room))
    refused(base / ("x" * (room + 1)), r"108 bytes.*shorter path")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_seen_as_a_descriptor(number: signal.Signals) -> None:
    stop = stop_signals()
    assert not select.select([stop], [], [], 0)[0]
    os.kill(os.getpid(), number)
    assert select.select([stop], [], [], HANG_S)[0]
