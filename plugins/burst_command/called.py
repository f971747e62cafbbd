# SPDX-License-Identifier: MIT
"""A call of the site's program that outlives the daemon, as `kill -9` leaves it.

The next daemon does not see yet in the list what that call is about to make, and would
have it made twice.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Of the fields after the name in proc_pid_stat(5).
_STATE, _START = 0, 19
# The process notes itself before it becomes the program: no moment is in between.
_SCRIPT = f'cat "/proc/$$/stat" {_BOOT} > "$0" && exec "$@"'


def noted(argv: Sequence[str], note: Path) -> list[str]:
    """Return a command that runs this one, and notes its process in a file before."""
    return ["/bin/sh", "-c", _SCRIPT, str(note), *argv]


class Call(NamedTuple):
    """One that runs."""

    pid: int
    """Of the program, and of its process group."""
    age: float
    """Seconds since it was started, by a clock that nobody sets."""

    def kill(self) -> None:
        """End it with its process group."""
        os.killpg(self.pid, signal.SIGKILL)


def running(note: Path) -> Call | None:
    """Return the call that a file notes, if it runs on this host. Raises OSError."""
    try:
        said = note.read_text()
        pid = int(said.split(maxsplit=1)[0])
        stat, boot = said.rstrip().rsplit("\n", 1)
        now = Path(f"/proc/{pid}/stat").read_text()
        before, fields = _fields(stat), _fields(now)
        same = fields[_START] == before[_START] and boot == _BOOT.read_text().strip()
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        # Without a whole note the program was not started.
        return None
    if not same or fields[_STATE] in "ZX":
        return None
    started = int(fields[_START]) / os.sysconf("SC_CLK_TCK")
    return Call(pid, time.clock_gettime(time.CLOCK_BOOTTIME) - started)


def _fields(stat: str) -> list[str]:
    """Return what is after the name, which may hold spaces and parentheses."""
    return stat.rpartition(")")[2].split()
