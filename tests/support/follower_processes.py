# SPDX-License-Identifier: MIT
"""Followers of an embedded lead that are processes of this host."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from burst.provider import BurstSpec
from tests.support.contract_lead import LeadBackend
from tests.support.waiting import wait_until


def followers(spec: BurstSpec) -> dict[int, str]:
    """Return the command lines of a burst's followers, by pid."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
            line = " ".join(words)
            if words[1:4] == ["-m", "burst_embedded", "follower"] and (
                f"/{spec.owner}." in line and f"/{spec.burst_id}/" in line
            ):
                found[int(pid)] = line
    return found


class ProcessBackend(LeadBackend):
    """Signals followers once they have joined: before, they may not heed it."""

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGKILL)

    def end(self, spec: BurstSpec, host: str) -> None:
        self._signal(spec, host, signal.SIGTERM)

    def _signal(self, spec: BurstSpec, host: str, number: signal.Signals) -> None:
        rank = spec.ranks[spec.hosts.index(host)]
        wait_until(lambda: rank in self.online(spec), f"{host} to join")
        for pid, line in followers(spec).items():
            if f"--hostname {host} " in line:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
