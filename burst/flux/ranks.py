# SPDX-License-Identifier: MIT
"""State of the ranks from Flux: R (RFC 20), and what is up, drained, allocated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.errors import BurstError, Unreadable
from burst.flux.loop import Loop
from burst.flux.lost_frees import LostFrees
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from burst.flux.stream import Stream
from burst.model.lead import LeadView
from burst.model.ranks import format_idset, parse_idset
from burst.model.resource_set import resource_set
from burst.model.shape import Shape

HEARD_DEADLINE_S = 5.0
"""How long the scheduler may take to learn of a drain; it takes a millisecond."""


class NodeSet(msgspec.Struct, frozen=True):
    """Cores and GPUs by rank: ids, since two sets may overlap."""

    cores: Mapping[int, frozenset[int]]
    gpus: Mapping[int, frozenset[int]]

    @property
    def ranks(self) -> frozenset[int]:
        """All ranks of which there is anything."""
        return frozenset(self.cores) | frozenset(self.gpus)

    def shape(self, rank: int) -> Shape:
        """Return how much there is of one rank."""
        return Shape(len(self.cores.get(rank, ())), len(self.gpus.get(rank, ())))


def parse_nodes(*resource_sets: Mapping[str, Any] | None) -> NodeSet:
    """Return what is in any of these R objects. Raises ValueError.

    None is an empty R: Fluxion answers with null where nothing is allocated or down
    (status_request_cb in flux-sched's resource/modules/resource.cpp).
    """
    cores: dict[int, frozenset[int]] = {}
    gpus: dict[int, frozenset[int]] = {}
    for each in filter(None, resource_sets):
        for group in resource_set(each).groups:
            for ids, found in ((group.ids("core"), cores), (group.ids("gpu"), gpus)):
                for rank in group.ranks if ids else ():
                    found[rank] = found.get(rank, frozenset()) | ids
    return NodeSet(cores, gpus)


def read_ranks(
    client: RpcClient,
    lost_frees: LostFrees,
    heard_deadline_s: float = HEARD_DEADLINE_S,
) -> LeadView:
    """Return a LeadView without jobs, whose `allocated` is as LeadView promises.

    A rank that is drained and not allocated in this view gets no job any more. The
    resource module drains a rank first; the scheduler learns of it a moment later (in
    src/modules/resource, drain.c answers, then reslog.c has acquire.c notify), and may
    allocate the rank until then. So the scheduler is asked after the resource module
    has named the drained ranks. A rank that the scheduler calls down it gives to no
    job, and what it gave before is in the same answer, since it serves one message at a
    time. Such a rank cannot be down for another reason (offline) and up again later:
    acquire.c leaves drained ranks out of each `up`, and an `up` sent earlier arrives at
    the scheduler before our request, as the broker keeps the order of messages. While
    the scheduler is reloaded it does not know all running jobs, so the allocations that
    the job manager knows are added. What the scheduler alone has allocated for longer
    than `lost_frees` waits is no job's: its rank is unfreed, and not allocated. Raises
    Unreadable, also where one of them answers with an error, as the job manager does
    where two active jobs have the same cores ("duplicate allocation" of alloc.c, seen
    after a lead was killed).
    """
    try:
        return _read(client, lost_frees, heard_deadline_s)
    except RequestFailed as error:
        advice = "flux dmesg shows what that module met"
        raise Unreadable(error.what, advice) from error


def _read(
    client: RpcClient, lost_frees: LostFrees, heard_deadline_s: float
) -> LeadView:
    deadline = time.monotonic() + heard_deadline_s
    while True:
        status = client.ask("resource.status")
        drained = _drained(status)
        scheduler, manager = _ask_both(client)
        unknown = frozenset(drained) & parse_nodes(scheduler["all"]).ranks
        unknown -= parse_nodes(scheduler["down"]).ranks
        if not unknown:
            break
        if time.monotonic() > deadline:
            ranks = format_idset(unknown)
            raise Unreadable(
                f"the scheduler has not learned that {ranks} is drained",
                "flux module stats of the scheduler shows whether it is stuck",
            )
    total = parse_nodes(status["R"])
    taken = parse_nodes(scheduler["allocated"], manager["allocated"])
    # A scheduler allocates, commits R to the KVS, and answers the job manager then.
    by_manager = parse_nodes(manager["allocated"])
    granting = _without(parse_nodes(scheduler["allocated"]), by_manager)
    unfreed = lost_frees.update(granting.cores)
    granting = _without(granting, NodeSet(unfreed, {}))
    return LeadView(
        read_at=time.time(),
        jobs={},
        online=parse_idset(status["online"]),
        torpid=parse_idset(status.get("torpid", "")),
        drained=drained,
        excluded=parse_idset(status["exclude"]),
        allocated=by_manager.ranks | frozenset(granting.cores),
        free={rank: _less(total, taken, rank) for rank in sorted(total.ranks)},
        unfreed=frozenset(unfreed),
        granting={rank: granting.shape(rank) for rank in sorted(granting.cores)},
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


def _ask_both(client: RpcClient) -> tuple[dict[str, Any], dict[str, Any]]:
    scheduler, manager = client.ask_all(
        [("sched.resource-status", {}), ("job-manager.resource-status", {})]
    )
    if isinstance(scheduler, ServiceMissing):
        raise Unreadable("no scheduler is loaded", "flux module load sched-simple")
    if isinstance(scheduler, BurstError):
        raise scheduler
    if isinstance(manager, BurstError):
        raise manager
    return scheduler, manager


def _drained(status: Mapping[str, Any]) -> dict[int, str]:
    return {
        rank: str(info.get("reason") or "")
        for ranks, info in status["drain"].items()
        for rank in sorted(parse_idset(ranks))
    }


def _without(nodes: NodeSet, taken: NodeSet) -> NodeSet:
    """Return what is in one and not in the other; GPUs where it has cores, too."""
    none: frozenset[int] = frozenset()
    cores = {
        rank: ids - taken.cores.get(rank, none) for rank, ids in nodes.cores.items()
    }
    left = {rank: ids for rank, ids in cores.items() if ids}
    gpus = {rank: ids - taken.gpus.get(rank, none) for rank, ids in nodes.gpus.items()}
    return NodeSet(left, {rank: gpus[rank] for rank in left if gpus.get(rank)})


def _less(total: NodeSet, taken: NodeSet, rank: int) -> Shape:
    none: frozenset[int] = frozenset()
    return Shape(
        len(total.cores.get(rank, none) - taken.cores.get(rank, none)),
        len(total.gpus.get(rank, none) - taken.gpus.get(rank, none)),
    )
