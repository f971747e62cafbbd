# SPDX-License-Identifier: MIT
"""Whether the lead's own nodes would do for a job, now or ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

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
        self._lead, self._identity = world.lead, world.identity
        self._slots = world.slots
        self._constraints = constraints
        self._own = own_ranks(records, world.lead, world.identity)
        self._free = self._pool(self._own, world.lead.free)
        self._remembered: dict[tuple[str, ResourceRequest], bool] = {}
        """What was found out about requests, by what was asked."""

    def take(self, request: ResourceRequest) -> bool:
        """Take what a job needs of what is free now; tell whether it was there."""
        key = "free", request
        if not self._remembered.get(key, True):
            return False  # nothing becomes free in a tick
        self._remembered[key] = self._fits(self._free, request)
        return self._remembered[key]

    def takes_some(self, request: ResourceRequest, lent: Set[int]) -> bool:
        """Tell whether a job that is first in the queue now would get own nodes, too.

        `lent` are its lent ranks. Flux takes the freest nodes, of equals the lowest.
        """
        pool = self._pool([*self._own, *lent], self._lead.free)
        shares = pool.fit(request, self._constraints.admitted_to(request))
        return not shares.keys().isdisjoint(self._own)

    def fits_when_idle(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes that are up would do once nothing runs on them."""
        key = "idle", request
        if key not in self._remembered:
            self._remembered[key] = self._fits(self._pool(self._own), request)
        return self._remembered[key]

    def fits_when_up(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes would do, were all of them up and idle."""
        others = {rank for slot in self._slots for rank in slot.ranks}
        others |= self._lead.barred
        ranks = range(len(self._identity.shapes))
        return self._fits(self._pool(r for r in ranks if r not in others), request)

    def fits_with_granted(self, request: ResourceRequest) -> bool:
        """Tell whether a job would fit on what is free or is being given to some job.

        Ranks of bursts count, too.
        """
        key = "granted", request
        if key not in self._remembered:
            free = dict(self._lead.free)
            for rank, more in self._lead.granting.items():
                less = free.get(rank, Shape(0))
                free[rank] = Shape(less.cores + more.cores, less.gpus + more.gpus)
            pool = self._pool(self._lead.usable, free)
            self._remembered[key] = self._fits(pool, request)
        return self._remembered[key]

    def _pool(
        self, ranks: Iterable[int], free: Mapping[int, Shape] | None = None
    ) -> NodePool:
        """Return ranks with what is free of them; without `free` all of each is."""
        whole = {rank: self._identity.shapes[rank] for rank in ranks}
        left = whole
        if free is not None:
            left = {rank: free.get(rank, Shape(0)) for rank in whole}
        return NodePool(left, whole, whole_nodes=self._lead.scheduler.whole_nodes)

    def _fits(self, pool: NodePool, request: ResourceRequest) -> bool:
        """Tell whether a job fits on a pool, by its constraint too; take its nodes."""
        return pool.take(request, self._constraints.admitted_to(request))
