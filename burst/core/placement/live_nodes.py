# SPDX-License-Identifier: MIT
"""What live bursts can give to jobs while a plan is made, and which must end."""

from __future__ import annotations

from collections.abc import Sequence

from burst.config import PlanSettings
from burst.core.placement.demand import nodes_needed
from burst.core.placement.leased_slots import LiveBursts
from burst.core.placement.plan import BurstCapacity, Demand
from burst.core.placement.preferences import accepts
from burst.core.placement.reservation import SlotReservations
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_index import SlotIndex
from burst.model.burst import BurstId
from burst.model.jobid import JobId

IdleShare = tuple[BurstCapacity, list[int]]
"""A live burst, and the ranks of it that a job gets, each a whole idle node."""


class LiveNodes:
    """The nodes of live bursts. Nothing becomes free while a plan is made."""

    def __init__(
        self,
        live: LiveBursts,
        index: SlotIndex,
        run_times: RunTimes,
        reservations: SlotReservations,
        settings: PlanSettings,
    ) -> None:
        self.assignments: dict[JobId, BurstId] = {}
        self.combined: dict[JobId, tuple[BurstId, ...]] = {}
        self.ending: set[BurstId] = set()
        self.awaited: frozenset[BurstId] = frozenset()
        self._given: set[BurstId] = set()
        self._capacities = live.capacities
        self.any = bool(live.capacities)
        self._index = index
        self._run_times = run_times
        self._usage = reservations.usage
        self._reservations = reservations
        self._share_users = settings.share_users

    def reuse(self, demand: Demand) -> BurstId | None:
        """Give a job to one live burst that has room for it now; return which."""
        assert demand.job is not None
        admitted = self._index.admitted_to(demand.request)
        for capacity in self._capacities:
            if not self._may_have(demand, capacity):
                continue
            if capacity.lasts < self._run_times.needed(demand):
                self._make_way(demand, capacity)
            elif capacity.pool.take(demand.request, admitted):
                self._usage.purchases.use(demand, capacity.burst)
                self._join(demand, capacity, self._nodes_for(demand, capacity))
                self.assignments[demand.job] = capacity.burst
                return capacity.burst
        return None

    def idle_nodes(self, demand: Demand) -> list[IdleShare]:
        """Return idle nodes of several live bursts for a job, as many as it lacks.

        Fewer where there are no more; those of the bursts that have the most first, so
        that it depends on few. Nodes of one shape only, as it needs as many of each.
        """
        found: list[IdleShare] = []
        lacks = 0
        admitted = self._index.admitted_to(demand.request)
        for capacity in self._capacities:
            if demand.job in capacity.jobs or not self._may_have(demand, capacity):
                continue
            if capacity.lasts < self._run_times.needed(demand):
                continue
            ranks = capacity.pool.idle(demand.request, admitted)
            if not ranks:
                continue
            lacks = lacks or self._nodes_for(demand, capacity) - demand.coming
            if self._nodes_for(demand, capacity) - demand.coming == lacks:
                found.append((capacity, ranks))
        found.sort(key=lambda share: -len(share[1]))
        return self._first(demand, found, lacks)

    def _first(
        self, demand: Demand, found: list[IdleShare], lacks: int
    ) -> list[IdleShare]:
        """Return so many of these nodes, within what its user may have."""
        chosen: list[IdleShare] = []
        bears = 0
        for capacity, ranks in found:
            here = ranks[: max(0, lacks)]
            more = bears + self._joins(demand, capacity)
            if not here or self._usage.refuse_user("", more, demand.userid):
                continue
            bears = more
            chosen.append((capacity, here))
            lacks -= len(here)
        return chosen

    def buys(self, demand: Demand, shares: Sequence[IdleShare]) -> bool:
        """Count that bursts are kept for a job, if budgets allow that; tell whether."""
        purchases = self._usage.purchases
        before = purchases.mark()
        for capacity, _ in shares:
            if not purchases.may_use(demand, capacity.burst):
                purchases.go_back(before)
                return False
            purchases.use(demand, capacity.burst)
        return True

    def nodes_borne(self, demand: Demand, shares: Sequence[IdleShare]) -> int:
        """Return how many nodes count anew against a job's user with these shares."""
        return sum(self._joins(demand, capacity) for capacity, _ in shares)

    def give(self, demand: Demand, shares: Sequence[IdleShare]) -> None:
        """Give these idle nodes to a job."""
        assert demand.job is not None
        for capacity, ranks in shares:
            capacity.pool.remove(ranks)
            self._join(demand, capacity, len(ranks))
        self.combined[demand.job] = tuple(capacity.burst for capacity, _ in shares)

    def make_way_for_first(self, demand: Demand) -> None:
        """End the idle bursts that keep the job with the reservation from its nodes."""
        needed = self._run_times.needed(demand)
        usable = {
            capacity.burst
            for capacity in self._capacities
            if capacity.idle
            and capacity.burst not in self._given
            and capacity.lasts >= needed
            and self._suits(demand, capacity)
        }
        stay = usable if self._reservations.composes(usable) else set()
        self.awaited = frozenset(filter(self._reservations.is_kept, stay))
        for capacity in self._capacities:
            burst = capacity.burst
            if burst in self._given or burst in stay:
                continue
            if self._reservations.must_go(capacity):
                self.ending.add(burst)

    def _may_have(self, demand: Demand, capacity: BurstCapacity) -> bool:
        """Tell whether a live burst, if large enough, may be used for the job."""
        if not capacity.pool or capacity.burst in self.ending:
            return False
        worth = demand.live_worth
        if worth is not None and not worth.pays(capacity.nodes, capacity.kept):
            return False
        nodes = self._nodes_for(demand, capacity)
        if not self._reservations.may_use(demand, capacity, nodes):
            return False
        suits = self._suits(demand, capacity)
        return suits and self._usage.purchases.may_use(demand, capacity.burst)

    def _suits(self, demand: Demand, capacity: BurstCapacity) -> bool:
        """Tell whether a live burst is one that a job may be on, whatever is free."""
        userids = capacity.userids
        if capacity.member != demand.member:
            return False
        if capacity.requester not in (None, demand.userid):
            return False
        # An older record does not say it; nodes that were made for a guest are for him.
        known = capacity.guests is not None
        runs = capacity.guests if known else demand.userid in userids
        if demand.preferences.guest and not runs:
            return False  # it would fail there
        if not self._share_users and userids and userids != {demand.userid}:
            return False
        joins = bool(userids) and demand.userid not in userids
        if joins and self._usage.refuse_user("", capacity.nodes, demand.userid):
            return False
        return accepts(demand.preferences, capacity.provider, capacity.price)

    def _joins(self, demand: Demand, capacity: BurstCapacity) -> int:
        """Return the nodes of a burst that the user of a job does not bear yet."""
        joins = bool(capacity.userids) and demand.userid not in capacity.userids
        return capacity.nodes if joins else 0

    def _join(self, demand: Demand, capacity: BurstCapacity, nodes: int) -> None:
        """Count a job that a live burst gets, also against its user."""
        userid = demand.userid
        if capacity.userids and userid is not None and userid not in capacity.userids:
            self._usage.add_user(capacity.nodes, userid)
            capacity.userids |= {userid}
        self._given.add(capacity.burst)
        self._reservations.join(demand, capacity, nodes)

    def _make_way(self, demand: Demand, capacity: BurstCapacity) -> None:
        """End an idle burst that would do for a job, but not for long enough.

        Where Flux is to start the job by itself, it might start it there; and the job
        may need the rank slot.
        """
        unused = capacity.idle and capacity.burst not in self._given
        served = self._run_times.needed(demand) <= self._run_times.longest_offered(
            demand.preferences
        )
        admitted = self._index.admitted_to(demand.request)
        if unused and served and capacity.pool.take(demand.request, admitted):
            self.ending.add(capacity.burst)

    def _nodes_for(self, demand: Demand, capacity: BurstCapacity) -> int:
        return nodes_needed(demand.request, capacity.pool.shape)
