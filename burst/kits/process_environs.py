# SPDX-License-Identifier: MIT
"""Environments of processes, by which it is told what they were started for."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
# PF_KTHREAD of the flags in proc_pid_stat(5).
_KERNEL_THREAD = 0x00200000
# After how many seconds a process without an environment is read again, and again. The
# longer ones are for a busy host, where it may have no turn within execve(2).
_PAUSES = (0.002,) * 10 + (0.02,) * 5


def read_environs(pids: Iterable[int], proc: Path = PROC) -> dict[int, bytes]:
    """Return what /proc/PID/environ has of each of these processes.

    Those are left out that have ended, or that we may not read. Any process in
    execve(2) shows no environment for a moment: it is read again.
    """
    found: dict[int, bytes] = {}
    bare = list(pids)
    for pause in (0.0, *_PAUSES):
        time.sleep(pause)
        found |= _readable(bare, proc)
        bare = [pid for pid in bare if found.get(pid) == b"" and _has_one(proc, pid)]
        if not bare:
            break
    return found


def read_stat(pid: int, proc: Path = PROC) -> list[str]:
    """Return the fields of proc_pid_stat(5) after the name. Raises OSError."""
    stat = (proc / str(pid) / "stat").read_text(errors="replace")
    # The name, in parentheses, may hold spaces and parentheses itself.
    return stat.rpartition(")")[2].split()


def has_ended(stat: list[str]) -> bool:
    """Return whether these fields are those of a process that has ended.

    It is a zombie before the last of its threads has ended.
    """
    return stat[0] in "ZX" and int(stat[17]) <= 1


def _readable(pids: Iterable[int], proc: Path) -> dict[int, bytes]:
    found = {}
    for pid in pids:
        try:
            found[pid] = (proc / str(pid) / "environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def _has_one(proc: Path, pid: int) -> bool:
    """Tell whether a process has an environment, though it shows none now."""
    try:
        stat = read_stat(pid, proc)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    return not (has_ended(stat) or int(stat[6]) & _KERNEL_THREAD)
