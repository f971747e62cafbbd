# SPDX-License-Identifier: MIT
"""What is known of the module that schedules the lead's jobs."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

FLUXION = "sched-fluxion-qmanager"
"""The module of Fluxion (flux-sched) that serves the lead's jobs."""
MATCHER = "sched-fluxion-resource"
"""Fluxion's module that matches jobs to nodes."""
FCFS = "fcfs"
"""Fluxion's first come, first served, its default: it starts no job ahead of another,
and denies what it could not start on nodes that are up (dfu.cpp)."""


class Order(enum.StrEnum):
    """In which order a scheduler starts jobs."""

    FIFO = "fifo"
    """The first waiting job starts first: sched-simple and sched-burst."""
    EASY = "easy"
    """As FIFO; others start before it where that does not make it wait longer."""
    CONSERVATIVE = "conservative"
    """As EASY, where it makes no job before them wait longer."""


_ORDERS = {
    FCFS: Order.FIFO,
    "easy": Order.EASY,
    "conservative": Order.CONSERVATIVE,
    "hybrid": Order.CONSERVATIVE,
}


class Scheduler(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler that is loaded."""

    name: str = ""
    """Of its module; empty if there is none, or it is not known."""
    order: Order = Order.FIFO
    policies: Mapping[str, str] = {}
    """Of Fluxion: the policy of each queue; `default` is that of an instance without
    named queues."""
    whole_nodes: bool = False
    """Whether each job gets all of its nodes, whatever it asks for of them: Fluxion's
    `lonodex` and other match policies that are node-exclusive."""
    stale_s: int = 0
    """For so many seconds Fluxion may repeat what it had allocated (`update-interval`
    of its module sched-fluxion-resource)."""

    @property
    def is_fluxion(self) -> bool:
        """Whether it is Fluxion."""
        return self.name == FLUXION

    @property
    def title(self) -> str:
        """What to call it in a message."""
        if self.is_fluxion:
            policies = ", ".join(sorted(set(self.policies.values())))
            return f"Fluxion ({policies})" if policies else "Fluxion"
        return self.name or "Flux's scheduler"

    @property
    def reload(self) -> str:
        """How it is loaded again, in commands."""
        if self.is_fluxion:
            return (
                f"flux module remove {FLUXION}, flux module reload {MATCHER}, flux"
                f" module load {FLUXION}"
            )
        return f"flux module reload {self.name or 'SCHEDULER'}"

    @property
    def fcfs_queues(self) -> tuple[str, ...]:
        """Fluxion's queues with the policy fcfs, sorted."""
        return tuple(sorted(n for n, p in self.policies.items() if p == FCFS))


def order_of(policies: Mapping[str, str]) -> Order:
    """Return in which order Fluxion starts jobs by these policies of its queues.

    Where queues differ: as one with EASY, as the first job of a queue does not keep
    those of other queues waiting. So it is for a policy that is not known here.
    """
    found = {_ORDERS.get(policy, Order.EASY) for policy in policies.values()}
    return found.pop() if len(found) == 1 else Order.EASY
