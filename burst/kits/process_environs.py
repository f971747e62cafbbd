# SPDX-License-Identifier: MIT
"""Reads the environments of processes, which tell what they were started for."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
# PF_KTHREAD of the flags in proc_pid_stat(5).
_KERNEL_THREAD = 0x00200000
# Seconds to wait before each further read of a process without an environment. The
# longer ones are for a busy host, on which a process may be suspended within execve(2).
_PAUSES = (0.002,) * 10 + (0.02,) * 5


def read_environs(pids: Iterable[int], proc: Path = PROC) -> dict[int, bytes]:
    """Return the content of /proc/PID/environ of each of these processes.

    Processes that have ended or that we may not read are left out. A process in
    execve(2) shows no environment for a moment, so it is read again.
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
    # The name, in parentheses, may itself contain spaces and parentheses.
    return stat.rpartition(")")[2].split()


def has_ended(stat: list[str]) -> bool:
    """Return whether a process with these fields has ended with all its threads.

    It may be a zombie while some of its threads still run.
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
