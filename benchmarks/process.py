# SPDX-License-Identifier: MIT
"""The CPU time and the memory of a process, from proc(5)."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Return the CPU time of all threads of a process, in seconds."""
    stat = (proc / str(pid) / "stat").read_text()
    # The name, in parentheses, may contain spaces and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int, proc: Path = Path("/proc")) -> dict[str, float]:
    """Return `rss`, `pss` and `uss` of a process in MB (10^6 bytes).

    A page that n processes share counts as its n-th part in Pss, and not at all in Uss.
    """
    text = (proc / str(pid) / "smaps_rollup").read_text()
    rows = (line.split() for line in text.splitlines()[1:])
    kib = {row[0].rstrip(":"): int(row[1]) for row in rows}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    sizes = {"rss": kib["Rss"], "pss": kib["Pss"], "uss": private}
    return {name: size * 1024 / 1e6 for name, size in sizes.items()}
