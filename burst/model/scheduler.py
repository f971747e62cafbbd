# SPDX-License-Identifier: MIT
"""The module that schedules the lead's jobs, as far as it is known."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

FLUXION = "sched-fluxion-qmanager"
"""The module of Fluxion (flux-sched) that serves the lead's jobs."""
MATCHER = "sched-fluxion-resource"
"""Fluxion's module that matches jobs to nodes."""
FCFS = "fcfs"
"""Fluxion's policy first come, first served, its default: it starts no job ahead of
another, and denies a job that it could not start on nodes that are up (dfu.cpp)."""


class Order(enum.StrEnum):
    """The order in which a scheduler starts jobs."""

    FIFO = "fifo"
    """The first waiting job starts first: sched-simple and sched-burst."""
    EASY = "easy"
    """As FIFO, but others may start earlier if the first job does not wait longer."""
    CONSERVATIVE = "conservative"
    """As FIFO, but a job may start earlier if no job before it waits longer."""


_ORDERS = {
    FCFS: Order.FIFO,
    "easy": Order.EASY,
    "conservative": Order.CONSERVATIVE,
    "hybrid": Order.CONSERVATIVE,
}


class Scheduler(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler that is loaded."""

    name: str = ""
    """The name of its module; empty if there is none, or it is not known."""
    loaded_as: str = ""
    """What `flux module load` was given if that is not the name: the path of a file
    that is in no directory where Flux looks, and its arguments."""
    order: Order = Order.FIFO
    policies: Mapping[str, str] = {}
    """Fluxion's policy of each queue, `default` for an instance without named queues;
    empty for other schedulers."""
    whole_nodes: bool = False
    """Whether a job always gets whole nodes: with Fluxion's `lonodex` and other match
    policies that are node-exclusive."""
    stale_s: int = 0
    """For how many seconds Fluxion may report old allocations (`update-interval` of its
    module sched-fluxion-resource)."""

    @property
    def is_fluxion(self) -> bool:
        """Whether the scheduler is Fluxion."""
        return self.name == FLUXION

    @property
    def takes_discrete(self) -> bool:
        """Whether it may start a job with a count of discrete values.

        While no scheduler is loaded, that is not known.
        """
        return self.is_fluxion or not self.name

    @property
    def title(self) -> str:
        """The scheduler's name in messages."""
        if self.is_fluxion:
            policies = ", ".join(sorted(set(self.policies.values())))
            return f"Fluxion ({policies})" if policies else "Fluxion"
        return self.name or "Flux's scheduler"

    @property
    def reload(self) -> str:
        """The commands that reload it."""
        if self.is_fluxion:
            return (
                f"flux module remove {FLUXION}, flux module reload {MATCHER}, flux"
                f" module load {FLUXION}"
            )
        # Removed by name: Flux does not find a path again that leads through a link.
        which = f"--name={self.name} {self.loaded_as}" if self.loaded_as else self.name
        return f"flux module reload {which or 'SCHEDULER'}"

    @property
    def fcfs_queues(self) -> tuple[str, ...]:
        """Fluxion's queues with the policy fcfs, sorted."""
        return tuple(sorted(n for n, p in self.policies.items() if p == FCFS))

    def unknown_queues(self, named: Iterable[str]) -> tuple[str, ...]:
        """Return which of these queues Fluxion does not know, sorted.

        It reads the named queues only when it is loaded, and denies jobs of others
        (qmanager.cpp, qmanager_callbacks.cpp).
        """
        return tuple(sorted(set(named) - set(self.policies))) if self.policies else ()


def order_of(policies: Mapping[str, str]) -> Order:
    """Return the order in which Fluxion starts jobs with these policies of its queues.

    If queues differ, it is EASY, as the first job of a queue does not keep jobs of
    other queues waiting. An unknown policy counts as EASY, too.
    """
    found = {_ORDERS.get(policy, Order.EASY) for policy in policies.values()}
    return found.pop() if len(found) == 1 else Order.EASY
