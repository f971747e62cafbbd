# SPDX-License-Identifier: MIT
"""The jobs of the demo, and how each has to end."""

from __future__ import annotations

from typing import Any

import msgspec

from burst.model.ranks import parse_hostlist

OWN = "lead-[0-1]"
SLOTS = ("burst-0-[0-3]", "burst-1-[0-3]")


class DemoJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job, and the hosts on which its tasks have to run."""

    nodes: int
    hosts: str
    """The hosts as a hostlist; empty if the job can never run, and is canceled."""
    requires: str = ""
    """The property that its nodes must have (RFC 31); empty for none."""
    burstable: bool = True

    def options(self) -> list[str]:
        """Return the options of `submit`, which are the same for both leads."""
        options = [f"-N{self.nodes}"]
        if self.burstable:
            options.append("--setattr=burstable")
        if self.requires:
            options.append(f"--requires={self.requires}")
        return options

    def fault(self, row: dict[str, Any]) -> str:
        """Return what is wrong with the end of the job; empty for nothing."""
        name, hosts = f"job {row['id']} of {self.nodes} nodes", row["output"].split()
        wanted = "completed" if self.hosts else "canceled"
        if row["state"] != wanted:
            return f"{name} is {row['state']}, not {wanted}"
        allowed = parse_hostlist(self.hosts) if self.hosts else ()
        right = len(hosts) == len(set(hosts)) == (self.nodes if self.hosts else 0)
        if not right or not set(hosts) <= set(allowed):
            where = f"{self.nodes} of {self.hosts}" if self.hosts else "no host"
            return f"{name} ran on {' '.join(hosts) or 'no host'}, not on {where}"
        return ""


# Each job names the nodes that it needs, so where it runs does not depend on timing.
LOCAL = DemoJob(nodes=2, hosts=OWN, requires="local", burstable=False)
LARGE = DemoJob(nodes=4, hosts=SLOTS[0], requires="burst-0")
SMALL = DemoJob(nodes=2, hosts=SLOTS[1], requires="burst-1")
# The lead declares ten hosts, and bursts can have eight of them.
HUGE = DemoJob(nodes=9, hosts="")
JOBS = (LOCAL, LARGE, SMALL, HUGE)
# In mode scheduler these are submitted while HUGE waits, and have to pass it.
PASSING = (LOCAL, DemoJob(nodes=1, hosts=OWN, requires="local", burstable=False))


def demo_jobs(mode: str) -> tuple[DemoJob, ...]:
    """Return the jobs in the order of their submission."""
    return (*JOBS, *PASSING) if mode == "scheduler" else JOBS
