# SPDX-License-Identifier: MIT
"""Whether the lead's own nodes would do for a job, now or ever."""

from __future__ import annotations

from collections.abc import Set
from functools import partial

from burst.core.plan.capacity import own_ranks
from burst.core.plan.fit import NodePool
from burst.core.records import RecordsView
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.model.request import ResourceRequest
from burst.model.shape import Shape


class OwnNodes:
    """The nodes of the lead that no burst leases, as a tick gives them to jobs."""

    def __init__(
        self, records: RecordsView, world: World, constraints: Constraints
    ) -> None:
        assert world.lead is not None
        self._lead = world.lead
        self._world = world
        self._constraints = constraints
        own = own_ranks(records, world.lead, world.identity)
        self._whole = {rank: world.identity.shapes[rank] for rank in own}
        free = {rank: world.lead.free.get(rank, Shape(0)) for rank in own}
        self._unallocated = free
        self._pool = partial(NodePool, whole_nodes=world.lead.scheduler.whole_nodes)
        self._free = self._pool(free, self._whole)
        self._too_large: set[ResourceRequest] = set()
        self._feasible: dict[ResourceRequest, bool] = {}
        self._fits_granted: dict[ResourceRequest, bool] = {}

    def take(self, request: ResourceRequest) -> bool:
        """Take what a job needs of what is free now; tell whether it was there."""
        if request in self._too_large:
            return False
        if self._free.take(request, self._constraints.admitted_to(request)):
            return True
        self._too_large.add(request)
        return False

    def takes_some(self, request: ResourceRequest, lent: Set[int]) -> bool:
        """Tell whether a job that is first in the queue now would get own nodes, too.

        `lent` are its lent ranks. Flux takes the freest nodes, of equals the lowest.
        """
        free = {rank: self._lead.free.get(rank, Shape(0)) for rank in lent}
        shapes = self._world.identity.shapes
        whole = {rank: shapes[rank] for rank in lent}
        pool = self._pool(self._unallocated | free, self._whole | whole)
        shares = pool.fit(request, self._constraints.admitted_to(request))
        return bool(shares.keys() & self._whole.keys())

    def fits_when_idle(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes that are up would do once nothing runs on them."""
        feasible = self._feasible.get(request)
        if feasible is None:
            pool = self._pool(self._whole, self._whole)
            feasible = pool.take(request, self._constraints.admitted_to(request))
            self._feasible[request] = feasible
        return feasible

    def fits_when_up(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes would do, were all of them up and idle."""
        others = {rank for slot in self._world.slots for rank in slot.ranks}
        others |= self._lead.barred
        shapes = enumerate(self._world.identity.shapes)
        own = {rank: shape for rank, shape in shapes if rank not in others}
        pool = self._pool(own, own)
        return pool.take(request, self._constraints.admitted_to(request))

    def fits_with_granted(self, request: ResourceRequest) -> bool:
        """Tell whether a job would fit on what is free or is being given to some job.

        Ranks of bursts count, too.
        """
        fits = self._fits_granted.get(request)
        if fits is None:
            lead, shapes = self._lead, self._world.identity.shapes
            free = dict(lead.free)
            for rank, more in lead.granting.items():
                less = free.get(rank, Shape(0))
                free[rank] = Shape(less.cores + more.cores, less.gpus + more.gpus)
            usable = lead.usable
            pool = self._pool(
                {rank: free.get(rank, Shape(0)) for rank in usable},
                {rank: shapes[rank] for rank in usable},
            )
            fits = pool.take(request, self._constraints.admitted_to(request))
            self._fits_granted[request] = fits
        return fits
