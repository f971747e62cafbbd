# SPDX-License-Identifier: MIT
"""Tells whether the lead's own nodes would do for a job, now or ever."""

from __future__ import annotations

from collections.abc import Mapping, Set

from burst.core.plan.fit import NodePool
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

_NOTHING = Shape(0)


class OwnNodes:
    """The nodes of the lead that no burst leases, as a tick gives them to jobs."""

    def __init__(
        self, world: World, constraints: Constraints, own: frozenset[int]
    ) -> None:
        """`own` is what `own_ranks` returns."""
        assert world.lead is not None
        self._world, self._lead = world, world.lead
        self.constraints = constraints
        self._admitted_to = constraints.admitted_to
        self._own = own
        self._free = self._pool(own, world.lead.free)
        self._too_large: set[ResourceRequest] = set()
        self._feasible: dict[ResourceRequest, bool] = {}
        self._fits_granted: dict[tuple[ResourceRequest, bool], bool] = {}

    def take(self, request: ResourceRequest) -> bool:
        """Take what a job needs of what is free now; tell whether that was enough."""
        if request in self._too_large:
            return False
        if self._free.take(request, self._admitted_to(request)):
            return True
        self._too_large.add(request)
        return False

    def takes_some(self, request: ResourceRequest, lent: Set[int]) -> bool:
        """Tell whether a job that is first in the queue now would get own nodes, too.

        `lent` are its lent ranks. Flux takes the freest nodes, and the lowest ranks of
        equal ones.
        """
        pool = self._pool(self._own | lent, self._lead.free)
        shares = pool.fit(request, self._admitted_to(request))
        return bool(shares.keys() & self._own)

    def fits_when_idle(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes that are up would do once nothing runs on them."""
        feasible = self._feasible.get(request)
        if feasible is None:
            pool = self._pool(self._own)
            feasible = pool.take(request, self._admitted_to(request))
            self._feasible[request] = feasible
        return feasible

    def fits_when_up(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes would do if all of them were up and idle."""
        others = {rank for slot in self._world.slots for rank in slot.ranks}
        others |= self._lead.barred
        pool = self._pool(set(range(len(self._world.identity.shapes))) - others)
        return pool.take(request, self._admitted_to(request))

    def fits_with_granted(self, request: ResourceRequest, *, lent: bool) -> bool:
        """Tell whether a job would fit on what is free or is being given to some job.

        With `lent`, ranks of bursts count, too.
        """
        key = request, lent
        fits = self._fits_granted.get(key)
        if fits is None:
            free = dict(self._lead.free)
            for rank, more in self._lead.granting.items():
                less = free.get(rank, _NOTHING)
                free[rank] = Shape(less.cores + more.cores, less.gpus + more.gpus)
            pool = self._pool(self._lead.usable if lent else self._own, free)
            fits = pool.take(request, self._admitted_to(request))
            self._fits_granted[key] = fits
        return fits

    def _pool(
        self, ranks: Set[int], free: Mapping[int, Shape] | None = None
    ) -> NodePool:
        """Return a pool of these nodes with what is free of each; by default, all."""
        shapes = self._world.identity.shapes
        whole = {rank: shapes[rank] for rank in ranks}
        if free is not None:
            free = {rank: free.get(rank, _NOTHING) for rank in ranks}
        whole_nodes = self._lead.scheduler.whole_nodes
        return NodePool(whole if free is None else free, whole, whole_nodes=whole_nodes)
