# SPDX-License-Identifier: MIT
"""What every broker process has: a directory of its own, and a way to be stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from burst.errors import ConfigError
from burst.kits.broker import check_socket
from burst.wakeup import WakeUp, on_signals

SOCKET = "control"


def private_directory(path: Path) -> Path:
    """Return the directory, made if need be, by its whole path. Raises ConfigError."""
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
    """Make it with mode 0700, unless it is there. Raises ConfigError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be made: {error.strerror}", "name another directory"
        ) from error


def stop_signals() -> int:
    """Return a descriptor that is readable once SIGTERM or SIGINT came."""
    stop = WakeUp()
    on_signals(stop.wake, signal.SIGTERM, signal.SIGINT)
    return stop.fileno()
