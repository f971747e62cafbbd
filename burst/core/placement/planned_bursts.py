# SPDX-License-Identifier: MIT
"""The bursts that a plan makes, and which further jobs they are made for, too."""

from __future__ import annotations

from collections.abc import Sequence

from burst.config import PlanSettings
from burst.core.placement.demand import NodePool, nodes_needed
from burst.core.placement.offers import ProviderOffer
from burst.core.placement.plan import Demand, PlannedBurst
from burst.core.placement.preferences import accepts
from burst.core.placement.reservation import SlotReservations
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_index import SlotIndex, SlotShare
from burst.core.placement.trials import PlanTrials
from burst.model.decision import OfferRejection

# How many bursts with room are looked at before a job gets one of its own.
_LOOK_BACK = 64
DemandKey = tuple[object, ...]
"""What demands have in common for which a plan has the same answer."""


class PlannedBursts:
    """The bursts of one plan while it is made; they grow as jobs are added."""

    def __init__(
        self,
        index: SlotIndex,
        trials: PlanTrials,
        run_times: RunTimes,
        reservations: SlotReservations,
        settings: PlanSettings,
    ) -> None:
        self.made: list[PlannedBurst] = []
        self._growing: list[PlannedBurst] = []
        self._last: dict[DemandKey, PlannedBurst] = {}
        """Which one the last of equal demands got."""
        self._index = index
        self._trials = trials
        self._run_times = run_times
        self._usage = reservations.usage
        self._reservations = reservations
        self._whole_nodes = reservations.whole_nodes
        self._share = settings.share
        self._share_users = settings.share_users

    def open(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        key: DemandKey,
        shares: Sequence[SlotShare],
    ) -> None:
        """Make a burst for a demand on each of these slots, which are taken for it."""
        for slot, nodes in shares:
            planned = PlannedBurst(candidate, slot, self._whole_nodes)
            planned.grow(nodes)
            self._buy(planned, demand)
            planned.add(demand)
            # Whether the job's share fits is known; of several bursts it takes all.
            if not planned.pool.take(demand.request):
                planned.most, planned.pool = 0, NodePool({}, {})
            self.made.append(planned)
            self._growing.append(planned)
            self._usage.add(candidate.key, nodes, 1, planned.userids)
            self._last[key] = planned
        self._trials.note(candidate, tuple(nodes for _, nodes in shares))

    def join(self, demand: Demand, key: DemandKey) -> bool:
        """Give the job to a burst of this plan, which may grow for it."""
        if not self._share:
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

    def _refuse(self, planned: PlannedBurst, demand: Demand) -> OfferRejection | None:
        """Return why budgets keep a burst of this plan from being kept for a job."""
        return self._usage.purchases.refuse(
            planned.provider_offer, demand, planned.nodes, planned.bought
        )

    def _may_join(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Tell whether a burst of this plan, if large enough, may be used for a job."""
        offer = planned.provider_offer.offer
        if planned.member != demand.member:
            return False
        if demand.preferences.guest and not offer.guests:
            return False  # it would fail there
        if not accepts(
            demand.preferences, planned.provider_offer.provider, offer.price
        ):
            return False
        lasts = self._run_times.why_too_short(planned.provider_offer, demand) is None
        return lasts and self._may_share(demand, frozenset(planned.userids))

    def _could_join_first(self, planned: PlannedBurst) -> bool:
        """Tell whether the job that slots are kept for would fit a burst of this plan.

        Then it waits for nodes that the burst has, and not for it to go: others delay
        it no longer by further nodes.
        """
        first = self._reservations.demand
        assert first is not None
        need = nodes_needed(first.request, planned.slot.shape)
        capacity = self._index.usable(planned.slot, first.request.constraint)
        fits = 0 < need <= min(planned.nodes, capacity) and not first.coming
        return fits and self._may_join(planned, first)

    def _add(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Give a job to a burst of this plan; tell whether it got it."""
        if not self._may_join(planned, demand):
            return False
        new = demand.userid not in planned.userids
        bears = planned.nodes if new else 0
        if self._usage.refuse_user(planned.provider_offer.key, bears, demand.userid):
            return False
        if self._refuse(planned, demand):
            return False
        admitted = self._index.admitted_to(demand.request)
        kept = planned.slot.name in self._reservations.slots
        kept = kept and not self._reservations.is_brief(demand)
        if kept or not planned.pool.take(demand.request, admitted):
            if kept and not self._could_join_first(planned):
                return False
            if not self._grow(planned, demand, bears):
                return False
            planned.pool.take(demand.request, admitted)
            bears = planned.nodes if new else 0
        self._usage.add_user(bears, demand.userid)
        self._buy(planned, demand)
        planned.add(demand)
        return True

    def _buy(self, planned: PlannedBurst, demand: Demand) -> None:
        """Count what a burst of this plan costs, with a demand that it gets."""
        planned.bought = self._usage.purchases.buy(
            planned.provider_offer, demand, planned.nodes, planned.bought
        )

    def _grow(self, planned: PlannedBurst, demand: Demand, bears: int) -> bool:
        """Have a burst of this plan grow for a job; tell whether it did.

        `bears` is how many of the nodes that it has count anew against the job's user.
        """
        if demand.not_worth:
            return False
        offer, slot = planned.provider_offer, planned.slot
        nodes = nodes_needed(demand.request, slot.shape)
        size = planned.nodes + nodes
        usable = self._index.usable(slot, demand.request.constraint)
        if not nodes or size > min(planned.most, usable):
            return False
        if self._trials.why_refused(offer, slot.name, size, planned.nodes):
            return False
        # Whoever it is made for bears what it grows by.
        more = dict.fromkeys((*planned.userids, demand.userid), nodes)
        more[demand.userid] = bears + nodes
        if self._usage.refuse(offer.key, (size,), nodes) or any(
            self._usage.refuse_user(offer.key, each, user)
            for user, each in more.items()
        ):
            return False
        if self._usage.purchases.refuse(offer, demand, size, planned.bought):
            return False
        planned.grow(nodes)
        self._trials.note(offer, (size,))
        self._usage.add(offer.key, nodes, 0, planned.userids)
        return True

    def _may_share(self, demand: Demand, userids: frozenset[int]) -> bool:
        return self._share_users or not userids or userids == {demand.userid}
