# SPDX-License-Identifier: MIT
"""The bursts that a plan makes, and which further jobs they are made for, too."""

from __future__ import annotations

from collections.abc import Sequence

from burst.core.placement.demand import NodePool, nodes_needed
from burst.core.placement.ground import Ground
from burst.core.placement.lenders import PlannedBurst
from burst.core.placement.limits import Asked, BurstUsage
from burst.core.placement.offers import ProviderOffer
from burst.core.placement.plan import Demand
from burst.core.placement.rank_table import SlotRanks, Want
from burst.core.placement.run_time import RunTimes
from burst.core.placement.trials import PlanTrials

# How many bursts with room are looked at before a job gets one of its own.
_LOOK_BACK = 64
DemandKey = tuple[object, ...]
"""What demands have in common for which a plan has the same answer."""
Piece = tuple[SlotRanks, list[int]]
"""Ranks of one slot."""


class PlannedBursts:
    """The bursts of one plan while it is made; they grow as jobs are added."""

    def __init__(self, ground: Ground, trials: PlanTrials, run_times: RunTimes) -> None:
        self.made: list[PlannedBurst] = []
        self._growing: list[PlannedBurst] = []
        self._last: dict[DemandKey, PlannedBurst] = {}
        """Which one the last of equal demands got."""
        self._ground = ground
        self._trials = trials
        self._run_times = run_times

    def open(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        key: DemandKey,
        pieces: Sequence[Piece],
    ) -> None:
        """Make a burst for a demand on each of these pieces, which are taken for it."""
        for slot, ranks in pieces:
            planned = PlannedBurst(candidate, slot, self._ground.whole_nodes)
            planned.grow(ranks)
            self._buy(planned, demand)
            planned.add(demand)
            # Whether the job's share fits is known; of several bursts it takes all.
            if not planned.pool.take(demand.request):
                planned.most, planned.pool = 0, NodePool({}, {})
            self.made.append(planned)
            self._growing.append(planned)
            until = self._until(candidate, demand)
            self._ground.table.take(slot, ranks, until)
            use = BurstUsage(
                nodes=planned.nodes,
                userids=planned.lender.userids,
                offer=candidate.key,
                until=until,
            )
            self._ground.usage.begin(planned.name, use)
            self._last[key] = planned
        self._trials.note(candidate, tuple(len(ranks) for _, ranks in pieces))

    def join(self, demand: Demand, key: DemandKey) -> bool:
        """Give the job to a burst of this plan, which may grow for it."""
        if not self._ground.settings.share:
            return False
        last = self._last.get(key)
        if last and self._add(last, demand):
            return True
        # What is full stays full while a plan is made.
        self._growing = [planned for planned in self._growing if not planned.full]
        for planned in self._growing[: -_LOOK_BACK - 1 : -1]:
            if planned is not last and self._add(planned, demand):
                self._last[key] = planned
                return True
        return False

    def _until(self, candidate: ProviderOffer, demand: Demand) -> float:
        return demand.end(self._ground.now + candidate.offer.join_time)

    def _may_join(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Tell whether a burst of this plan, if large enough, may be used for a job."""
        share_users = self._ground.settings.share_users
        if not planned.lender.takes(demand, share_users=share_users):
            return False
        candidate = planned.candidate
        if self._run_times.why_too_short(candidate, demand) is not None:
            return False
        kept = self._ground.table.kept_from(planned.ranks)
        return self._until(candidate, demand) <= kept

    def _add(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Give a job to a burst of this plan; tell whether it got it."""
        if not self._may_join(planned, demand):
            return False
        usage, candidate = self._ground.usage, planned.candidate
        borne = planned.nodes if planned.lender.joins(demand) else 0
        asked = Asked.joined(demand.userid, borne)
        if usage.why_not(asked):
            return False
        if usage.purchases.refuse(candidate, demand, planned.nodes, planned.bought):
            return False
        admitted = self._ground.admitted(demand)
        if not planned.pool.take(demand.request, admitted):
            if not self._grow(planned, demand, borne):
                return False
            planned.pool.take(demand.request, admitted)
        else:
            usage.add(asked)
        self._buy(planned, demand)
        planned.add(demand)
        until = self._until(candidate, demand)
        usage.prolong(planned.name, until)
        self._ground.table.prolong(planned.ranks, until)
        return True

    def _buy(self, planned: PlannedBurst, demand: Demand) -> None:
        """Count what a burst of this plan costs, with a demand that it gets."""
        planned.bought = self._ground.usage.purchases.buy(
            planned.candidate, demand, planned.nodes, planned.bought
        )

    def _grow(self, planned: PlannedBurst, demand: Demand, borne: int) -> bool:
        """Have a burst of this plan grow for a job; tell whether it did.

        `borne` is how many of the nodes that it has count anew against the job's user.
        """
        if demand.not_worth:
            return False
        offer, slot, ground = planned.candidate, planned.slot, self._ground
        nodes = nodes_needed(demand.request, slot.slot.shape)
        until, before = self._until(offer, demand), planned.nodes
        ranks = slot.usable(Want(until, ground.admitted(demand)))[:nodes]
        size = before + nodes
        if not nodes or len(ranks) < nodes or size > planned.most:
            return False
        if self._trials.why_refused(offer, slot.slot.name, size, before):
            return False
        # Whoever it is made for bears what it grows by.
        bears = dict.fromkeys(planned.lender.userids, nodes)
        if demand.userid is not None:
            bears[demand.userid] = nodes + borne
        asked = Asked(
            offer=offer.key, sizes=(size,), nodes=nodes, bears=bears, until=until
        )
        if ground.usage.why_not(asked):
            return False
        if ground.usage.purchases.refuse(offer, demand, size, planned.bought):
            return False
        planned.grow(ranks)
        ground.table.take(slot, ranks, until)
        ground.usage.add(asked)
        self._trials.note(offer, (size,))
        return True
