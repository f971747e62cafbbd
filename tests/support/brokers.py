# SPDX-License-Identifier: MIT
"""The followers of a burst that run on this host, whoever has started them."""

from __future__ import annotations

import contextlib
from pathlib import Path


def brokers(burst_id: str) -> dict[str, int]:
    """Return the pids of a burst's brokers of Flux, by host."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_text()
            words = command.split("\0")
            hosts = [w[11:] for w in words if w.startswith("-Shostname=")]
            ours = hosts and any(burst_id in word for word in words)
            if ours and not is_fork(entry, command):
                found[hosts[0]] = int(entry.name)
    return found


def stopped(burst_id: str) -> set[int]:
    """Return the pids of a burst's processes that are stopped (state T of proc(5))."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if burst_id in (entry / "cmdline").read_text():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                found |= {int(entry.name)} if state == "T" else set()
    return found


def is_fork(entry: Path, command: str) -> bool:
    """Tell whether a process, by its directory in /proc, was a copy of another.

    A broker forks to start a program, and its command line is there twice meanwhile.
    `command` is what the process had: it may run that program by now. Raises OSError
    if it has ended.
    """
    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
    with contextlib.suppress(OSError):
        return (entry.with_name(parent) / "cmdline").read_text() == command
    return False
