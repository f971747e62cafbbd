# SPDX-License-Identifier: MIT
"""What every broker process has: a directory of its own, and a way to be stopped."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from burst.errors import ConfigError, LeadError

LONGEST_PATH = 107
"""Of a Unix socket, in bytes: sun_path of unix(7) without its last zero."""
SOCKET = "control"


@contextlib.contextmanager
def private_directory(path: Path) -> Iterator[Path]:
    """Yield the directory, made if need be, that no other broker uses meanwhile.

    Raises ConfigError, LeadError.
    """
    path = path.absolute()
    check_socket_path(str(path / SOCKET))
    make_directory(path)
    state = path.stat()
    if state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise ConfigError(
            f"{path}: is not private (mode {state.st_mode & 0o777:04o}, owner"
            f" {state.st_uid})",
            f"users who can enter it can control the lead: chmod 700 {path}, or choose"
            " another --rundir",
        )
    with open(path / "lock", "a", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeadError(
                f"{path}: another broker uses it", "end that one, or use another"
            ) from None
        yield path


def check_socket_path(path: str) -> None:
    """Raise ConfigError where a Unix socket cannot have that path."""
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise ConfigError(
            f"{path}: is {size} bytes long, and a Unix socket's path may have"
            f" {LONGEST_PATH} bytes",
            "start the lead with a shorter --rundir",
        )


def make_directory(path: Path) -> None:
    """Make it with mode 0700, unless it is there. Raises ConfigError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be made: {error.strerror}", "name another directory"
        ) from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: may not be written", "name another directory")


@contextlib.contextmanager
def stop_signals() -> Iterator[int]:
    """Yield a descriptor that is readable once SIGTERM or SIGINT came."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        # Before the handlers: one that came in between would be taken and forgotten.
        wakeup = signal.set_wakeup_fd(theirs.fileno())
        before = {
            number: signal.signal(number, _note)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield ours.fileno()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the wake-up descriptor has woken the loop already."""
