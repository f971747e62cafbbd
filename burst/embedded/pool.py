# SPDX-License-Identifier: MIT
"""Resources: which ranks a request may have, which fit, what is taken. Pure.

Fit is decided as Flux's Rv1Pool decides it: the rank with the most free cores first,
then the most free GPUs, then the lowest rank; a request that no set of ranks could
hold, were all up and free, is infeasible and is told so in Flux's words. Of a range
(RFC 14) a job gets the minimum, where Flux would give what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from burst.embedded.node import NodeResources, matches
from burst.model.ranks import format_idset
from burst.model.request import ResourceRequest
from burst.model.shape import Shape


class Infeasible(Exception):
    """No set of ranks could ever hold the request; the text is Flux's."""


class NodeShare(msgspec.Struct, frozen=True):
    """What a job has of one rank, and how many of its slots that makes."""

    cores: frozenset[int]
    gpus: frozenset[int]
    slots: int


Allocation = Mapping[int, NodeShare]
"""By rank."""


class ResourcePool:
    """The ranks of an instance: up or not, drained or not, free or not."""

    def __init__(self, nodes: Iterable[NodeResources]) -> None:
        self.nodes = {node.rank: node for node in nodes}
        self.online: set[int] = set()
        self.drained: dict[int, str] = {}
        self._free = {
            rank: (node.cores, node.gpus) for rank, node in self.nodes.items()
        }

    def free_shapes(self) -> dict[int, Shape]:
        """Return what is unallocated of each rank, up or not."""
        return {
            rank: Shape(len(cores), len(gpus))
            for rank, (cores, gpus) in self._free.items()
        }

    def allocated(self) -> frozenset[int]:
        """Return the ranks of which anything is allocated."""
        return frozenset(
            rank
            for rank, node in self.nodes.items()
            if self._free[rank] != (node.cores, node.gpus)
        )

    def allocate(
        self, request: ResourceRequest, constraint: Mapping[str, Any] | None
    ) -> Allocation | None:
        """Take and return what the request needs; None if it is not free now.

        Raises Infeasible.
        """
        allowed = self._allowed(constraint)
        usable = [
            rank for rank in allowed if rank in self.online and rank not in self.drained
        ]
        usable.sort(key=lambda rank: tuple(-len(part) for part in self._free[rank]))
        chosen = (
            self._whole_nodes(request, usable)
            if request.nodes
            else self._slots(request, usable)
        )
        if chosen is None:
            _check_feasible(request, [self.nodes[rank].shape for rank in allowed])
            return None
        for rank, share in chosen.items():
            cores, gpus = self._free[rank]
            self._free[rank] = (cores - share.cores, gpus - share.gpus)
        return chosen

    def release(self, allocation: Allocation) -> None:
        """Give back what `allocate` returned."""
        for rank, share in allocation.items():
            cores, gpus = self._free[rank]
            self._free[rank] = (cores | share.cores, gpus | share.gpus)

    def _allowed(self, constraint: Mapping[str, Any] | None) -> list[int]:
        if constraint is None:
            return list(self.nodes)
        return [r for r, node in self.nodes.items() if matches(node, constraint)]

    def _whole_nodes(
        self, request: ResourceRequest, ranks: list[int]
    ) -> Allocation | None:
        slots = request.slots // request.nodes
        chosen: dict[int, NodeShare] = {}
        for rank in ranks:
            if len(chosen) == request.nodes:
                break
            cores, gpus = self._free[rank]
            if request.exclusive:
                whole = cores == self.nodes[rank].cores
                if whole and len(gpus) >= request.gpus_per_slot:
                    chosen[rank] = NodeShare(cores, gpus, slots)
            elif _slots_in(len(cores), len(gpus), request) >= slots:
                chosen[rank] = _share(cores, gpus, slots, request)
        return chosen if len(chosen) == request.nodes else None

    def _slots(self, request: ResourceRequest, ranks: list[int]) -> Allocation | None:
        chosen: dict[int, NodeShare] = {}
        missing = request.slots
        for rank in ranks:
            cores, gpus = self._free[rank]
            take = min(missing, _slots_in(len(cores), len(gpus), request))
            if take:
                chosen[rank] = _share(cores, gpus, take, request)
                missing -= take
        return chosen if not missing else None


def summary(allocation: Allocation) -> str:
    """Return what was allocated as Flux's annotation says it: `rank4/core[0-3]`."""
    parts = []
    for rank, share in sorted(allocation.items()):
        gpus = f",gpu[{format_idset(share.gpus)}]" if share.gpus else ""
        parts.append(f"rank{rank}/core[{format_idset(share.cores)}]{gpus}")
    return " ".join(parts)


def _slots_in(cores: int, gpus: int, request: ResourceRequest) -> int:
    slots = cores // request.cores_per_slot
    if request.gpus_per_slot:
        slots = min(slots, gpus // request.gpus_per_slot)
    return slots


def _share(
    cores: frozenset[int], gpus: frozenset[int], slots: int, request: ResourceRequest
) -> NodeShare:
    first_cores = sorted(cores)[: slots * request.cores_per_slot]
    first_gpus = sorted(gpus)[: slots * request.gpus_per_slot]
    return NodeShare(frozenset(first_cores), frozenset(first_gpus), slots)


def _check_feasible(request: ResourceRequest, shapes: Sequence[Shape]) -> None:
    """Raise Infeasible unless the request fits the shapes when all are free."""
    slot = Shape(request.cores_per_slot, request.gpus_per_slot)
    if request.exclusive:
        _check_count(shapes, slot, request.nodes, "exclusive node(s)")
    elif request.nodes:
        slots = request.slots // request.nodes
        need = Shape(slots * slot.cores, slots * slot.gpus)
        gpus = f" and {need.gpus} GPUs" if need.gpus else ""
        what = f"node(s) with {need.cores} cores{gpus} each"
        _check_count(shapes, need, request.nodes, what)
    else:
        _check_slots(request, shapes)


def _check_count(shapes: Sequence[Shape], need: Shape, nodes: int, what: str) -> None:
    eligible = sum(shape.holds(need) for shape in shapes)
    if eligible < nodes:
        raise Infeasible(
            f"unsatisfiable request: need {nodes} {what}, only {eligible} eligible"
        )


def _check_slots(request: ResourceRequest, shapes: Sequence[Shape]) -> None:
    need, size, gpus = request.slots, request.cores_per_slot, request.gpus_per_slot
    by_cores = sum(shape.cores // size for shape in shapes)
    if by_cores < need:
        raise Infeasible(
            f"unsatisfiable request: need {need} slot(s) of {size} core(s), only"
            f" {by_cores} such slot(s) available (total cores:"
            f" {sum(shape.cores for shape in shapes)})"
        )
    both = sum(_slots_in(shape.cores, shape.gpus, request) for shape in shapes)
    if both < need:
        raise Infeasible(
            f"unsatisfiable request: need {need} slot(s) with {gpus} GPU(s) each, only"
            f" {both} available (total GPUs: {sum(shape.gpus for shape in shapes)})"
        )
