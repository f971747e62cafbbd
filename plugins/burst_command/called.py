# SPDX-License-Identifier: MIT
"""A call of the site's program that outlives the daemon, such as after `kill -9`.

The next daemon does not see in the list yet what that call is about to make, and would
have it made a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Positions among the fields after the name in proc_pid_stat(5).
_STATE, _START = 0, 19
# The process notes itself before it becomes the program, so no program lacks a note.
_SCRIPT = f'cat "/proc/$$/stat" {_BOOT} > "$0" && exec "$@"'
# A daemon that lives kills it earlier, and reports that it took too long.
_SPARE_S = 1.0


def noted(argv: Sequence[str], note: Path, limit: float) -> list[str]:
    """Return a command that notes its process in a file, and then runs `argv`.

    It is killed with its process group soon after `limit` seconds, even if no daemon
    lives.
    """
    ends = ["timeout", "-s", "KILL", f"{limit + _SPARE_S:g}"]
    return [*ends, "/bin/sh", "-c", _SCRIPT, str(note), *argv]


def running(note: Path) -> int:
    """Return the pid of the call that a file notes, if it runs on this host, or 0.

    Raises OSError.
    """
    try:
        said = note.read_text()
        pid = int(said.split(maxsplit=1)[0])
        stat, boot = said.rstrip().rsplit("\n", 1)
        before, now = _fields(stat), _fields(Path(f"/proc/{pid}/stat").read_text())
        same = now[_START] == before[_START] and boot == _BOOT.read_text().strip()
    except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
        # Without a complete note the program was not started.
        return 0
    return pid if same and now[_STATE] not in "ZX" else 0


def _fields(stat: str) -> list[str]:
    """Return the fields after the name, which may have spaces and parentheses."""
    return stat.rpartition(")")[2].split()
