# SPDX-License-Identifier: MIT
"""Shared by all broker processes: a private directory, and signals that stop them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from burst.errors import ConfigError
from burst.kits.broker import check_socket
from burst.wakeup import WakeUp, on_signals

SOCKET = "control"


def private_directory(path: Path) -> Path:
    """Return the absolute path of a private directory; make it if it is missing.

    Raises ConfigError.
    """
    path = path.absolute()
    check_socket(path / SOCKET)
    make_directory(path)
    state = path.stat()
    if state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise ConfigError(
            f"{path}: is not private (mode {state.st_mode & 0o777:04o}, owner"
            f" {state.st_uid})",
            f"users who can enter it can control the lead: chmod 700 {path}, or choose"
            " another --rundir",
        )
    return path


def make_directory(path: Path) -> None:
    """Make a directory with mode 0700 unless it exists. Raises ConfigError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be made: {error.strerror}", "name another directory"
        ) from error


def stop_signals() -> int:
    """Return a descriptor that becomes readable on SIGTERM or SIGINT."""
    stop = WakeUp()
    on_signals(stop.wake, signal.SIGTERM, signal.SIGINT)
    return stop.fileno()
