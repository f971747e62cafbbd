# SPDX-License-Identifier: MIT
"""The jobs of the story, and what each of them is to come to. Pure."""

from __future__ import annotations

import msgspec

from burst.model.ranks import parse_hostlist

OWN = "lead-[0-1]"
SLOTS = ("burst-0-[0-3]", "burst-1-[0-3]")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One job."""

    nodes: int
    hosts: str
    """A hostlist: where its tasks are to run; empty for nowhere."""
    burstable: bool = True
    requires: str = ""
    """A property that its nodes must have."""

    @property
    def options(self) -> tuple[str, ...]:
        """What the lead's submit command is told, an embedded one's or Flux's."""
        options = [f"-N{self.nodes}"]
        if self.burstable:
            options.append("--setattr=burstable")
        if self.requires:
            options.append(f"--requires={self.requires}")
        return tuple(options)

    def fault(self, state: str, output: str) -> str:
        """Return what is not as it should be at the end; empty if nothing."""
        wanted = "completed" if self.hosts else "canceled"
        if state != wanted:
            return f"is {state}, not {wanted}"
        names = output.split()
        if not self.hosts:
            return f"ran on {' '.join(names)}, and was to run nowhere" if names else ""
        places = parse_hostlist(self.hosts)
        if len(names) != len(set(names)) or not set(names) <= set(places):
            return f"ran on {' '.join(names)}, not on {self.nodes} of {self.hosts}"
        if len(names) != self.nodes:
            return f"ran on {len(names)} nodes, not on {self.nodes}"
        return ""


# Keeps the lead's own nodes busy until the others are done, so that nothing of the
# story depends on how fast anything is.
LOCAL = Part(nodes=2, hosts=OWN, burstable=False)
LARGE = Part(nodes=4, hosts=SLOTS[0])
# The property is the rank slot's: without it, the job might take the nodes of the one
# before, if that is done by then.
SMALL = Part(nodes=2, hosts=SLOTS[1], requires="burst-1")
# The lead declares ten hosts, and eight of them may be lent.
HUGE = Part(nodes=9, hosts="")
PARTS = (LOCAL, LARGE, SMALL, HUGE)
# The second act: while the huge one waits, others pass it. Both are for the lead's own
# nodes, so that each ends before the next act whatever is lent meanwhile.
PASSING = (
    Part(nodes=2, hosts=OWN, burstable=False, requires="local"),
    Part(nodes=1, hosts=OWN, burstable=False, requires="local"),
)


def parts_of(mode: str) -> tuple[Part, ...]:
    """Return the jobs of a story in which jobs come in that way."""
    return (*PARTS, *PASSING) if mode == "scheduler" else PARTS
