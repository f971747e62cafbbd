# SPDX-License-Identifier: MIT
"""How many nodes a job needs, and whether it fits on some, as Flux's Rv1Pool counts.

Fluxion counts the nodes of a job in the same way: a node takes as many of the job's
slots as it holds, or as many as the job asks for on each node.

Flux decides what starts; this only predicts it. Real Flux is the oracle in the tests.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec

from burst.model.request import ResourceRequest
from burst.model.shape import Shape

_NOTHING = Shape(0)


def nodes_needed(request: ResourceRequest, shape: Shape) -> int:
    """Return how many idle nodes of this shape the job needs; 0 if none would do.

    It is also 0 if the job would need more nodes than its queue lets a job have.
    """
    if request.exclusive:
        slot = Shape(request.cores_per_slot, request.gpus_per_slot)
        return request.nodes if shape.holds(slot) else 0
    if request.nodes:
        return request.nodes if shape.holds(_per_node(request)) else 0
    room = slots_on(request, shape)
    need = -(-request.slots // room) if room else 0
    return 0 if 0 < request.most_nodes < need else need


def rest_of(
    request: ResourceRequest, nodes: Iterable[tuple[Shape, int]]
) -> ResourceRequest:
    """Return what a job needs beside some idle nodes; of no slots if they are enough.

    `nodes` are shapes, and how many nodes there are of each. A job that asks for slots
    needs fewer large nodes than small ones, so the slots that they hold are subtracted.
    """
    if request.nodes:
        have = sum(count for shape, count in nodes if nodes_needed(request, shape))
        left = max(0, request.nodes - have)
        slots = request.slots // request.nodes * left
        return msgspec.structs.replace(request, nodes=left, slots=slots)
    slots, most = request.slots, request.most_nodes
    for shape, count in nodes:
        room = slots_on(request, shape)
        slots -= room * count
        most -= count if room else 0
    # 0 would be any number.
    most = max(1, most) if request.most_nodes else 0
    return msgspec.structs.replace(request, slots=max(0, slots), most_nodes=most)


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
    """Free cores and GPUs of some nodes, by rank; jobs take their shares in turn.

    `whole` is what each node has when idle. Nodes with the most free cores are taken
    first, as Flux's shipped schedulers do (worst fit). With `whole_nodes` a job gets
    only idle nodes, and all of each, as in Fluxion with a node-exclusive match policy.
    """

    def __init__(
        self,
        free: Mapping[int, Shape],
        whole: Mapping[int, Shape],
        *,
        whole_nodes: bool = False,
    ) -> None:
        self._free = dict(free)
        self.whole = dict(whole)
        self.whole_nodes = whole_nodes
        self.cores = sum(shape.cores for shape in self._free.values())
        """How many cores are free on all nodes together."""
        self._order: list[tuple[int, int, int]] | None = None

    @property
    def free(self) -> dict[int, Shape]:
        """What is free on each node that has a free core."""
        return {rank: shape for rank, shape in self._free.items() if shape.cores > 0}

    def add(self, ranks: Iterable[int], shape: Shape) -> None:
        """Add idle nodes of a shape."""
        for rank in ranks:
            self.whole[rank] = shape
            self._set(rank, shape)

    def __bool__(self) -> bool:
        return self.cores > 0

    def copy(self) -> NodePool:
        """Return a pool of the same nodes, as it is now."""
        made = NodePool({}, {}, whole_nodes=self.whole_nodes)
        made._free, made.whole, made.cores = self._free.copy(), self.whole, self.cores
        return made

    def within(self, other: NodePool) -> NodePool:
        """Return a pool of what is free both in this one and in another."""
        free = {}
        for _, _, rank in self._freest():
            mine, theirs = self._free[rank], other._free.get(rank, _NOTHING)
            if mine is theirs or theirs.holds(mine):
                free[rank] = mine
            elif theirs.cores > 0:
                least = min(mine.cores, theirs.cores), min(mine.gpus, theirs.gpus)
                free[rank] = Shape(*least)
        made = NodePool(free, {}, whole_nodes=self.whole_nodes)
        made.whole = self.whole
        return made

    def fit(
        self, request: ResourceRequest, admitted: Set[int] | None = None
    ) -> dict[int, Shape]:
        """Return what the job would get of each rank; empty if it does not fit now.

        `admitted` are the ranks that it may have, None for all.
        """
        if least_cores(request) > self.cores:
            return {}
        order = self._freest()
        ranks = (r for _, _, r in order if admitted is None or r in admitted)
        if not self.whole_nodes:
            return self._on_nodes(request, ranks)
        idle = (rank for rank in ranks if self._free[rank] == self.whole[rank])
        return {rank: self._free[rank] for rank in self._on_nodes(request, idle)}

    def take(self, request: ResourceRequest, admitted: Set[int] | None = None) -> bool:
        """Take what `fit` returns, and tell whether the job fits."""
        shares = self.fit(request, admitted)
        self.take_shares(shares)
        return bool(shares)

    def take_shares(self, shares: Mapping[int, Shape]) -> None:
        """Take a job's share of each rank that is one of these nodes."""
        for rank, share in shares.items():
            free = self._free.get(rank)
            if free is not None:
                left = Shape(free.cores - share.cores, free.gpus - share.gpus)
                self._set(rank, left)

    def give_shares(self, shares: Mapping[int, Shape]) -> None:
        """Give back what was taken of nodes that are in this pool."""
        for rank, share in shares.items():
            free = self._free[rank]
            more = Shape(free.cores + share.cores, free.gpus + share.gpus)
            self._set(rank, more)

    def idle(
        self, request: ResourceRequest, admitted: Set[int] | None = None
    ) -> list[int]:
        """Return the ranks of idle nodes that would do for a job, lowest first."""
        return [
            rank
            for rank, free in sorted(self._free.items())
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
            self._set(rank, _NOTHING)

    def _freest(self) -> list[tuple[int, int, int]]:
        """Return the nodes that have a free core, the freest first."""
        if self._order is None:
            self._order = sorted(
                (-shape.cores, -shape.gpus, rank)
                for rank, shape in self._free.items()
                if shape.cores > 0
            )
        return self._order

    def _set(self, rank: int, shape: Shape) -> None:
        """Set what is free on a node. Without a free core, the rest is of no use."""
        order, before = self._order, self._free.get(rank, _NOTHING)
        self._free[rank] = shape
        self.cores += shape.cores - before.cores
        if order is not None:
            if before.cores > 0:
                key = (-before.cores, -before.gpus, rank)
                del order[bisect_left(order, key)]
            if shape.cores > 0:
                insort(order, (-shape.cores, -shape.gpus, rank))

    def _on_nodes(
        self, request: ResourceRequest, ranks: Iterable[int]
    ) -> dict[int, Shape]:
        """Return each rank's share, or nothing where the job does not fit."""
        if not request.nodes:
            return self._by_slots(request, ranks)
        shares: dict[int, Shape] = {}
        share = _per_node(request)
        for rank in ranks:
            free = self._free[rank]
            if request.exclusive:
                # All its cores have to be free.
                whole = free.cores == self.whole[rank].cores
                if whole and nodes_needed(request, free):
                    shares[rank] = free
            elif free.holds(share):
                shares[rank] = share
            elif free.cores < share.cores:
                break
            if len(shares) == request.nodes:
                return shares
        return {}

    def _by_slots(
        self, request: ResourceRequest, ranks: Iterable[int]
    ) -> dict[int, Shape]:
        shares: dict[int, Shape] = {}
        missing = request.slots
        for rank in ranks:
            here = min(missing, slots_on(request, self._free[rank]))
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


def least_cores(request: ResourceRequest) -> int:
    """Return the least number of cores that a job takes, on whatever nodes."""
    slots = request.nodes if request.exclusive else request.slots
    return slots * request.cores_per_slot


def _per_node(request: ResourceRequest) -> Shape:
    slots = request.slots // request.nodes
    return Shape(slots * request.cores_per_slot, slots * request.gpus_per_slot)


def slots_on(request: ResourceRequest, shape: Shape) -> int:
    """Return how many slots of the job a node with this much free holds."""
    slots = shape.cores // request.cores_per_slot
    if request.gpus_per_slot:
        slots = min(slots, shape.gpus // request.gpus_per_slot)
    return slots
