# SPDX-License-Identifier: MIT
"""Processes that are told by a text in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from burst.kits.process_environs import PROC, read_environs
from tests.support.waiting import wait_until

_AT_START = dict(os.environ)


def pids_with(text: str) -> list[int]:
    """Return the processes in whose environment the text is, except this one."""
    others = {int(pid) for pid in os.listdir(PROC) if pid.isdigit()} - {os.getpid()}
    environs = read_environs(others)
    return [pid for pid, environ in environs.items() if text.encode() in environ]


def kill_all_with(text: str) -> None:
    """Kill these processes until none is left: until then they may write files."""

    def none_left() -> bool:
        pids = pids_with(text)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    wait_until(none_left, lambda: f"the end of {pids_with(text)}")


@contextlib.contextmanager
def unmarked() -> Iterator[None]:
    """Give what is started in the block the environment that this process began with.

    That is for processes that outlive a test: those that have its texts in theirs are
    killed at its end.
    """
    now = dict(os.environ)
    os.environ.clear()
    os.environ.update(_AT_START)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(now)
