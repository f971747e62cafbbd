# SPDX-License-Identifier: MIT
"""Fluxion's queues that share no nodes: each is served by itself, by its own policy.

The first job of one queue does not keep jobs of other queues waiting. Queues that share
nodes count as one. Other schedulers have one order for the jobs of all queues.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from burst.core.worth.queue_order import PendingJob
from burst.model.scheduler import Order, Scheduler, order_of

_UNNAMED = "default"


class SeparateQueue(NamedTuple):
    """Jobs that wait for the same nodes, in their order."""

    order: Order
    jobs: list[PendingJob]
    ranks: Set[int]
    """Nodes on which they may run."""


def separate_queues(
    waiting: Sequence[PendingJob], scheduler: Scheduler, ranks: Set[int]
) -> list[SeparateQueue]:
    """Return the queues that have no node in common; `ranks` are all own nodes."""
    if not scheduler.is_fluxion:
        return [SeparateQueue(scheduler.order, list(waiting), ranks)]
    groups: list[tuple[Set[str], Set[int]]] = []
    kinds = {(job.queue, id(job.need)): job.need[1] for job in waiting}
    for (queue, _), admitted in kinds.items():
        queues: Set[str] = {queue}
        reached: Set[int] = ranks if admitted is None else admitted & ranks
        apart = []
        for each in groups:
            if queue in each[0] or not reached.isdisjoint(each[1]):
                queues, reached = queues | each[0], reached | each[1]
            else:
                apart.append(each)
        groups = [*apart, (queues, reached)]
    return [
        SeparateQueue(
            _order(queues, scheduler),
            [job for job in waiting if job.queue in queues],
            reached,
        )
        for queues, reached in groups
    ]


def _order(queues: Set[str], scheduler: Scheduler) -> Order:
    names = {queue or _UNNAMED for queue in queues}
    return order_of({name: scheduler.policies.get(name, "") for name in names})
