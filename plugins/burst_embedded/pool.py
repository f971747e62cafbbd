# SPDX-License-Identifier: MIT
"""Resources: which ranks a request may have, which fit, what is taken. Pure.

Fit is decided as the planner foresees it (`burst.core.plan.demand`), which is as
Flux's Rv1Pool decides it. A request that no set of ranks could hold, were all up and
free, is infeasible, and gets Flux's message. Of a range (RFC 14) a job gets the
minimum, where Flux would give what there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import msgspec

from burst.core.plan.fit import NodePool, slots_on
from burst.model.confinement import LENT
from burst.model.constraint import ConstraintEvaluator
from burst.model.ranks import format_idset
from burst.model.request import ResourceRequest
from burst.model.resource_set import EMPTY, ResourceGroup, ResourceSet
from burst.model.shape import Shape


class Infeasible(Exception):
    """No set of ranks could ever hold the request; the text is Flux's."""


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank has, by R."""

    rank: int
    host: str
    cores: frozenset[int]
    gpus: frozenset[int] = frozenset()
    properties: frozenset[str] = frozenset()

    @property
    def shape(self) -> Shape:
        """The same as numbers."""
        return Shape(len(self.cores), len(self.gpus))


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
        having: defaultdict[str, set[int]] = defaultdict(set)
        for rank, node in self.nodes.items():
            for name in node.properties:
                having[name].add(rank)
        self._never_lent = self.nodes.keys() - having[LENT]
        hosts = {node.host: rank for rank, node in self.nodes.items()}
        self._constraints = ConstraintEvaluator(hosts, having)

    def view(self) -> dict[str, Any]:
        """Return how ranks are now: what LeadView has of them."""
        return {
            "online": self.online,
            "drained": self.drained,
            "allocated": self.allocated(),
            "free": self.free_shapes(),
        }

    def free_shapes(self) -> dict[int, Shape]:
        """Return what is unallocated of each rank, up or not."""
        return {rank: self._free_shape(rank) for rank in self._free}

    def allocated(self) -> frozenset[int]:
        """Return the ranks of which anything is allocated."""
        return frozenset(
            rank
            for rank, node in self.nodes.items()
            if self._free[rank] != (node.cores, node.gpus)
        )

    def allowed(self, request: ResourceRequest) -> frozenset[int]:
        """Return the ranks that its constraint admits. Raises JobspecError."""
        return self._constraints.admitted(request.constraint)

    def allocate(
        self, request: ResourceRequest, confined_to: Set[int] | None = None
    ) -> Allocation | None:
        """Take and return what the request needs; None if it is not free now.

        `confined_to` are the lent ranks that it may have, None for all of them. Raises
        Infeasible, and JobspecError where its constraint cannot be read.
        """
        allowed = self.allowed(request)
        if confined_to is not None:
            allowed &= self._never_lent | confined_to
        usable = self.online.intersection(allowed).difference(self.drained)
        whole = {rank: self.nodes[rank].shape for rank in usable}
        free = {rank: self._free_shape(rank) for rank in usable}
        asked = request
        if request.exclusive:
            # Rv1Pool gives whole nodes that are idle whatever their cores are.
            asked = msgspec.structs.replace(request, cores_per_slot=1)
        shapes = NodePool(free, whole).fit(asked)
        if not shapes:
            _check_feasible(request, [self.nodes[rank].shape for rank in allowed])
            return None
        chosen = {
            rank: self._share(rank, shape, request) for rank, shape in shapes.items()
        }
        for rank, share in chosen.items():
            cores, gpus = self._free[rank]
            self._free[rank] = (cores - share.cores, gpus - share.gpus)
        return chosen

    def release(self, allocation: Allocation) -> None:
        """Give back what `allocate` returned."""
        for rank, share in allocation.items():
            cores, gpus = self._free[rank]
            self._free[rank] = (cores | share.cores, gpus | share.gpus)

    def resource_set(self, allocation: Allocation) -> ResourceSet:
        """Return R of an allocation."""
        ranks = sorted(allocation)
        groups = [_group(rank, allocation[rank]) for rank in ranks]
        return EMPTY.with_ranks(groups, [self.nodes[rank].host for rank in ranks])

    def _free_shape(self, rank: int) -> Shape:
        cores, gpus = self._free[rank]
        return Shape(len(cores), len(gpus))

    def _share(self, rank: int, shape: Shape, request: ResourceRequest) -> NodeShare:
        """Return the first free cores and GPUs of the rank, as many as asked for."""
        cores, gpus = self._free[rank]
        slots = (
            request.slots // request.nodes
            if request.nodes
            else shape.cores // request.cores_per_slot
        )
        return NodeShare(
            frozenset(sorted(cores)[: shape.cores]),
            frozenset(sorted(gpus)[: shape.gpus]),
            slots,
        )


def _group(rank: int, share: NodeShare) -> ResourceGroup:
    children = {"core": format_idset(share.cores)}
    if share.gpus:
        children["gpu"] = format_idset(share.gpus)
    return ResourceGroup(str(rank), children)


def summary(allocation: Allocation) -> str:
    """Return what was allocated as Flux's annotation says it: `rank4/core[0-3]`."""
    parts = []
    for rank, share in sorted(allocation.items()):
        children = _group(rank, share).children.items()
        had = ",".join(f"{name}[{ids}]" for name, ids in children)
        parts.append(f"rank{rank}/{had}")
    return " ".join(parts)


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
    both = sum(slots_on(request, shape) for shape in shapes)
    if both < need:
        raise Infeasible(
            f"unsatisfiable request: need {need} slot(s) with {gpus} GPU(s) each, only"
            f" {both} available (total GPUs: {sum(shape.gpus for shape in shapes)})"
        )
