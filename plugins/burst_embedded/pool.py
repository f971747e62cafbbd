# SPDX-License-Identifier: MIT
"""Resources: the ranks that a request may have, which of them fit, and what is taken.
Pure.

Whether a request fits is decided as in the planner (`burst.core.plan.demand`), and so
as in Flux's Rv1Pool. A request is infeasible if it would not fit even if all ranks were
up and free. For a range (RFC 14) a job gets the minimum; Flux would give as much as is
free.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from burst.core.plan.fit import NodePool
from burst.model.confinement import LENT
from burst.model.constraint import ConstraintEvaluator
from burst.model.lead import LeadView
from burst.model.ranks import format_idset
from burst.model.request import ResourceRequest
from burst.model.resource_set import EMPTY, ResourceGroup, ResourceSet
from burst.model.shape import Shape

_Ids = tuple[frozenset[int], frozenset[int]]
"""The ids of cores, and those of GPUs."""


class Infeasible(Exception):
    """No set of ranks could ever hold the request."""


class ResourcePool:
    """The ranks of R, with what is online, drained and free."""

    def __init__(self, resources: ResourceSet) -> None:
        """Raises ValueError if a text in R is malformed."""
        self.hosts = {node.rank: node.host for node in resources.nodes}
        self.online: set[int] = set()
        self.drained: dict[int, str] = {}
        self._whole = _ids(resources)
        self._free = dict(self._whole)
        self._never_lent = self.hosts.keys() - resources.properties.get(
            LENT, frozenset()
        )
        ranks = {host: rank for rank, host in self.hosts.items()}
        self._constraints = ConstraintEvaluator(ranks, resources.properties)

    def view(self) -> LeadView:
        """Return a view of all ranks, without jobs and without the time."""
        return LeadView(
            read_at=0.0,
            jobs={},
            online=frozenset(self.online),
            drained=self.drained,
            allocated=self.allocated(),
            free={rank: _shape(ids) for rank, ids in self._free.items()},
        )

    def allocated(self) -> frozenset[int]:
        """Return the ranks that have allocated resources."""
        free = self._free.items()
        return frozenset(rank for rank, ids in free if ids != self._whole[rank])

    def allowed(self, request: ResourceRequest) -> frozenset[int]:
        """Return the ranks that a request's constraint admits. Raises JobspecError."""
        return self._constraints.admitted(request.constraint)

    def allocate(
        self, request: ResourceRequest, confined_to: Set[int] | None = None
    ) -> ResourceSet | None:
        """Take the resources for a request, and return their R; None if they are not
        free now.

        `confined_to` are the lent ranks that it may have, None for all of them. Raises
        Infeasible, and JobspecError if its constraint cannot be read.
        """
        allowed = self.allowed(request)
        if confined_to is not None:
            allowed &= self._never_lent | confined_to
        usable = self.online.intersection(allowed).difference(self.drained)
        whole = {rank: _shape(self._whole[rank]) for rank in usable}
        free = {rank: _shape(self._free[rank]) for rank in usable}
        asked = request
        if request.exclusive:
            # Rv1Pool gives whole idle nodes, however many cores they have.
            asked = msgspec.structs.replace(request, cores_per_slot=1)
        shapes = NodePool(free, whole).fit(asked)
        if not shapes:
            idle = {rank: _shape(self._whole[rank]) for rank in allowed}
            if not NodePool(idle, idle).fit(request):
                raise Infeasible("unsatisfiable request: no ranks could ever hold it")
            return None
        groups = [self._take(rank, shapes[rank]) for rank in sorted(shapes)]
        return EMPTY.with_ranks(groups, [self.hosts[rank] for rank in sorted(shapes)])

    def release(self, resources: ResourceSet) -> None:
        """Give back resources that `allocate` returned."""
        for rank, (cores, gpus) in _ids(resources).items():
            free_cores, free_gpus = self._free[rank]
            self._free[rank] = (free_cores | cores, free_gpus | gpus)

    def _take(self, rank: int, shape: Shape) -> ResourceGroup:
        """Take the first free cores and GPUs of a rank, as many as `shape` has."""
        cores, gpus = (sorted(ids) for ids in self._free[rank])
        left = cores[shape.cores :], gpus[shape.gpus :]
        self._free[rank] = (frozenset(left[0]), frozenset(left[1]))
        children = {"core": format_idset(cores[: shape.cores])}
        if shape.gpus:
            children["gpu"] = format_idset(gpus[: shape.gpus])
        return ResourceGroup(str(rank), children)


def slots_of(request: ResourceRequest, group: ResourceGroup) -> int:
    """Return how many slots of the request are on a rank of its allocation."""
    if request.nodes:
        return request.slots // request.nodes
    return len(group.ids("core")) // request.cores_per_slot


def _ids(resources: ResourceSet) -> dict[int, _Ids]:
    return {
        rank: (group.ids("core"), group.ids("gpu"))
        for group in resources.groups
        for rank in sorted(group.ranks)
    }


def _shape(ids: _Ids) -> Shape:
    return Shape(len(ids[0]), len(ids[1]))
