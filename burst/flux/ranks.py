# SPDX-License-Identifier: MIT
"""Reads the state of the ranks: R (RFC 20), and what is up, drained, allocated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from burst.errors import BurstError, Unreadable
from burst.flux.loop import Loop
from burst.flux.node_set import NodeSet, parse_nodes
from burst.flux.rpc import RequestFailed, RpcClient
from burst.flux.scheduler_status import Allocations, SchedulerStatus
from burst.flux.stream import Stream
from burst.model.lead import LeadView
from burst.model.ranks import parse_idset
from burst.model.shape import Shape


def read_ranks(
    client: RpcClient, scheduler: SchedulerStatus, *, moved: bool = True
) -> LeadView:
    """Return a LeadView without jobs, whose `allocated` is as LeadView promises.

    A rank that is drained and not allocated in this view gets no job any more. The
    resource module drains a rank first; the scheduler learns of it a moment later (in
    src/modules/resource, drain.c answers, then reslog.c has acquire.c notify), and may
    allocate the rank until then. So a drained rank counts as allocated until the
    scheduler, asked after the resource module has named the rank, says that it is down.
    The scheduler gives a rank that is down to no job, and the same answer has what it
    gave before, since it serves one message at a time. Such a rank cannot be down for
    another reason (offline) and up again later: acquire.c leaves drained ranks out of
    each `up`, and an `up` sent earlier arrives at the scheduler before our request, as
    the broker keeps the order of messages. A drain that was lifted and made again has
    another time or reason, or was made by us, so that no older answer counts for it.
    While the scheduler is reloaded it does not know all running jobs. So the job
    manager is asked each time, too, and the allocations that it knows are added.
    Cores that only the scheduler has allocated, for longer than `LostFrees` waits,
    belong to no job: their rank is unfreed, and not allocated.

    `moved` tells whether there were events of jobs since the last call. Raises
    Unreadable, also if a module answers with an error, as the job manager does if two
    active jobs have the same cores ("duplicate allocation" of alloc.c, seen after a
    lead was killed).
    """
    try:
        status, manager = client.ask_each(
            [("resource.status", {}), ("job-manager.resource-status", {})]
        )
        by_scheduler = scheduler.read(client, status, manager, moved=moved)
    except RequestFailed as error:
        advice = "flux dmesg shows the errors of that module"
        raise Unreadable(error.what, advice) from error
    return _view(status, manager, by_scheduler)


def _view(
    status: Mapping[str, Any], manager: Mapping[str, Any], scheduler: Allocations
) -> LeadView:
    total = parse_nodes(status["R"])
    by_manager = parse_nodes(manager["allocated"])
    granting, unfreed = scheduler.granting, scheduler.unfreed
    taken = (by_manager, granting, unfreed)
    excluded = parse_idset(status["exclude"])
    return LeadView(
        read_at=time.time(),
        jobs={},
        online=parse_idset(status["online"]),
        torpid=parse_idset(status.get("torpid", "")),
        drained=_drained(status),
        excluded=excluded,
        unscheduled=total.ranks - scheduler.known - excluded,
        allocated=by_manager.ranks | frozenset(granting.cores) | scheduler.unheard,
        free={rank: _less(total, taken, rank) for rank in sorted(total.ranks)},
        unfreed=frozenset(unfreed.cores),
        granting={rank: granting.shape(rank) for rank in sorted(granting.cores)},
        granting_lasts=scheduler.pause,
    )


class ResourceWatcher:
    """Wakes on each event of the resource journal: online, drain and the like.

    The content of the events is not read: `read_ranks` asks for the state itself, so
    that missed events do no harm.
    """

    def __init__(self, loop: Loop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        self._stream = Stream(loop, "resource.journal", {}, self._take, self._broken)

    def start(self) -> None:
        """Begin to follow."""
        self._loop.post(self._stream.open)

    def _take(self, _payload: bytes) -> None:
        self._wake()

    def _broken(self, _error: BurstError) -> bool:
        self._wake()
        return True


def _drained(status: Mapping[str, Any]) -> dict[int, str]:
    return {
        rank: str(info.get("reason") or "")
        for ranks, info in status["drain"].items()
        for rank in sorted(parse_idset(ranks))
    }


def _less(total: NodeSet, taken: tuple[NodeSet, ...], rank: int) -> Shape:
    none: frozenset[int] = frozenset()
    cores, gpus = total.cores.get(rank, none), total.gpus.get(rank, none)
    for each in taken:
        cores -= each.cores.get(rank, none)
        gpus -= each.gpus.get(rank, none)
    return Shape(len(cores), len(gpus))
