# SPDX-License-Identifier: MIT
"""How many nodes a job needs, and whether it fits on some, as Flux's Rv1Pool counts.

Fluxion counts the nodes of a job alike: as many of its slots as a node holds, or as
many for each node as it asks for.

Flux decides what starts; this only foresees it. Real Flux is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from burst.model.request import ResourceRequest
from burst.model.shape import Shape


def nodes_needed(request: ResourceRequest, shape: Shape) -> int:
    """Return how many idle nodes of this shape the job needs; 0 if none would do.

    None do, either, where it would need more than its queue lets a job have.
    """
    if request.exclusive:
        slot = Shape(request.cores_per_slot, request.gpus_per_slot)
        return request.nodes if shape.holds(slot) else 0
    if request.nodes:
        return request.nodes if shape.holds(_per_node(request)) else 0
    room = slots_on(request, shape)
    need = -(-request.slots // room) if room else 0
    return 0 if 0 < request.most_nodes < need else need


def describe_need(request: ResourceRequest) -> str:
    """Return what one node must have for the job, in words."""
    if request.nodes and not request.exclusive:
        return str(_per_node(request))
    slot = str(Shape(request.cores_per_slot, request.gpus_per_slot))
    if not request.most_nodes:
        return slot
    return (
        f"{request.slots} times {slot}, on at most {request.most_nodes} nodes by the"
        " limit of its queue"
    )


class NodePool:
    """Free cores and GPUs of some nodes, by rank, to be taken from job by job.

    `whole` is what each node has when idle. Nodes with the most free cores are taken
    first, as Flux's shipped schedulers do (worst fit). With `whole_nodes` a job gets
    idle nodes alone, and all of each, as of Fluxion with a node-exclusive match policy.
    """

    def __init__(
        self,
        free: Mapping[int, Shape],
        whole: Mapping[int, Shape],
        *,
        whole_nodes: bool = False,
    ) -> None:
        self.free = {rank: free[rank] for rank in sorted(free) if free[rank].cores}
        self.whole = dict(whole)
        self.whole_nodes = whole_nodes

    def add(self, rank: int, shape: Shape) -> None:
        """Add an idle node."""
        self.free[rank] = self.whole[rank] = shape

    def __bool__(self) -> bool:
        return bool(self.free)

    def fit(
        self, request: ResourceRequest, admitted: frozenset[int] | None = None
    ) -> dict[int, Shape]:
        """Return what the job would get of each rank; empty if it does not fit now.

        `admitted` are the ranks that it may have, None for all.
        """
        ranks = [rank for rank in self.free if admitted is None or rank in admitted]
        ranks.sort(key=self._key, reverse=True)
        if not self.whole_nodes:
            return self._on_nodes(request, ranks)
        idle = [rank for rank in ranks if self.free[rank] == self.whole[rank]]
        return {rank: self.free[rank] for rank in self._on_nodes(request, idle)}

    def take(
        self, request: ResourceRequest, admitted: frozenset[int] | None = None
    ) -> bool:
        """Take what `fit` returns, and tell whether the job fits."""
        shares = self.fit(request, admitted)
        if not shares:
            return False
        self.take_shares(shares)
        return True

    def take_shares(self, shares: Mapping[int, Shape]) -> None:
        """Take a job's share of each rank that is one of these nodes."""
        for rank in shares.keys() & self.free.keys():
            left, share = self.free[rank], shares[rank]
            left = Shape(left.cores - share.cores, left.gpus - share.gpus)
            if left.cores:
                self.free[rank] = left
            else:
                del self.free[rank]

    def clear(self) -> None:
        """Take all that is free."""
        self.free.clear()

    def idle(
        self, request: ResourceRequest, admitted: frozenset[int] | None = None
    ) -> list[int]:
        """Return the ranks of idle nodes that would do for a job, lowest first."""
        return [
            rank
            for rank, free in self.free.items()
            if free == self.whole[rank]
            and nodes_needed(request, free)
            and (admitted is None or rank in admitted)
        ]

    @property
    def shape(self) -> Shape:
        """What a node has when idle; all nodes of a burst have the same."""
        return next(iter(self.whole.values()))

    def remove(self, ranks: Iterable[int]) -> None:
        """Take all of some nodes."""
        for rank in ranks:
            del self.free[rank]

    def _key(self, rank: int) -> tuple[int, int]:
        return self.free[rank].cores, self.free[rank].gpus

    def _on_nodes(self, request: ResourceRequest, ranks: list[int]) -> dict[int, Shape]:
        """Return each rank's share, or nothing where the job does not fit."""
        shares: dict[int, Shape] = {}
        if not request.nodes:
            return self._by_slots(request, ranks)
        for rank in ranks:
            free = self.free[rank]
            share = free if request.exclusive else _per_node(request)
            if request.exclusive and not self._can_be_exclusive(request, rank):
                continue
            if free.holds(share):
                shares[rank] = share
            if len(shares) == request.nodes:
                return shares
        return {}

    def _can_be_exclusive(self, request: ResourceRequest, rank: int) -> bool:
        # All its cores are free; and as `nodes_needed`, which says what never fits.
        free = self.free[rank]
        whole = free.cores == self.whole[rank].cores
        return whole and bool(nodes_needed(request, free))

    def _by_slots(self, request: ResourceRequest, ranks: list[int]) -> dict[int, Shape]:
        shares: dict[int, Shape] = {}
        missing = request.slots
        for rank in ranks:
            here = min(missing, slots_on(request, self.free[rank]))
            if here:
                shares[rank] = Shape(
                    here * request.cores_per_slot, here * request.gpus_per_slot
                )
                missing -= here
            if not missing:
                return shares
        return {}


def merged(pools: Sequence[NodePool]) -> NodePool:
    """Return a pool of the nodes of several, as it is now."""
    if len(pools) == 1:
        return pools[0]
    free = {rank: shape for pool in pools for rank, shape in pool.free.items()}
    whole = {rank: shape for pool in pools for rank, shape in pool.whole.items()}
    return NodePool(free, whole, whole_nodes=pools[0].whole_nodes)


def _per_node(request: ResourceRequest) -> Shape:
    slots = request.slots // request.nodes
    return Shape(slots * request.cores_per_slot, slots * request.gpus_per_slot)


def slots_on(request: ResourceRequest, shape: Shape) -> int:
    """Return how many slots of the job a node with this much free holds."""
    slots = shape.cores // request.cores_per_slot
    if request.gpus_per_slot:
        slots = min(slots, shape.gpus // request.gpus_per_slot)
    return slots
