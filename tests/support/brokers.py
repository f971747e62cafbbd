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
            words = (entry / "cmdline").read_text().split("\0")
            hosts = [w[11:] for w in words if w.startswith("-Shostname=")]
            if hosts and any(burst_id in word for word in words):
                found[hosts[0]] = int(entry.name)
    return found
