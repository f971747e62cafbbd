# SPDX-License-Identifier: MIT
"""Processes that are told by a text in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.support.waiting import wait_until

_AT_START = dict(os.environ)


def pids_with(text: str) -> list[int]:
    """Return the processes in whose environment the text is, except this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


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
