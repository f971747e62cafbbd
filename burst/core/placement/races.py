# SPDX-License-Identifier: MIT
"""A second burst at another provider for jobs whose rule has two providers raced.

It is planned last, of what all other jobs have left. The two are one demand: jobs are
assigned to both, and `burst.core.races` decides which of them keeps the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from burst.core.placement.offers import ProviderOffer
from burst.core.placement.plan import PlannedBurst, Proposal
from burst.core.placement.preferences import OfferSorter
from burst.core.placement.reservation import SlotReservations
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.slot_rests import SlotClass
from burst.core.placement.slots import RankSlot
from burst.core.placement.trials import PlanTrials
from burst.model.decision import OfferRejection
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason

_Place = tuple[SlotClass, RankSlot]


class Races:
    """Plans the second burst of each race, once no burst of the plan grows any more."""

    def __init__(
        self,
        index: SlotIndex,
        trials: PlanTrials,
        run_times: RunTimes,
        reservations: SlotReservations,
    ) -> None:
        self._index = index
        self._trials = trials
        self._run_times = run_times
        self._reservations = reservations
        self._usage = reservations.usage

    def propose(
        self,
        plan: Sequence[PlannedBurst],
        sorter: OfferSorter,
        lead: LeadIdentity,
        now: float,
    ) -> list[Proposal]:
        """Return the bursts of a plan as they are to be made, each race's together."""
        if any(planned.races for planned in plan):
            for planned in plan:
                self._index.leave(planned.slot, planned.nodes)
        proposals: list[Proposal] = []
        for planned in plan:
            first = planned.propose(lead, now)
            if not planned.races:
                proposals.append(first)
                continue
            rival = self._find_rival(planned, sorter)
            if isinstance(rival, str):
                proposals.append(msgspec.structs.replace(first, race=rival))
                continue
            second, race = rival.propose(lead, now), first.lease.id
            proposals.append(_raced(first, second, race))
            proposals.append(_raced(second, first, race))
        return proposals

    def _find_rival(
        self, planned: PlannedBurst, sorter: OfferSorter
    ) -> PlannedBurst | str:
        """Take the best offer of another provider for a burst's jobs.

        Return why there is none, in words.
        """
        refusals: list[OfferRejection] = []
        preferences = {demand.preferences for demand in planned.demands}
        # All of them list the same offers, in the same order.
        each = [sorter.wanted(wish).offers for wish in preferences]
        provider = planned.provider_offer.provider
        for views in zip(*each, strict=True):
            candidate = views[0].candidate
            if candidate.provider == provider or any(view.isolated for view in views):
                continue
            unwanted = next((v.unwanted for v in views if v.unwanted), None)
            rival = unwanted or self._try(candidate, planned)
            if isinstance(rival, PlannedBurst):
                return rival
            refusals.append(rival)
        catalog = self._trials.catalog.refusals
        refusals += (r for r in catalog if r.offer.partition("/")[0] != provider)
        return _not_raced(refusals)

    def _try(
        self, candidate: ProviderOffer, planned: PlannedBurst
    ) -> PlannedBurst | OfferRejection:
        """Take an offer for as many nodes as the first burst has; or return why not."""
        demands, nodes = planned.demands, planned.nodes
        short = (self._run_times.why_too_short(candidate, each) for each in demands)
        refused = self._trials.why_tried(candidate) or next(filter(None, short), None)
        if refused:
            return refused
        place = self._find_slot(candidate, planned)
        if isinstance(place, OfferRejection):
            return place
        users = (
            self._usage.refuse_user(candidate.key, nodes, user)
            for user in sorted(planned.userids)
        )
        refused = (
            self._usage.refuse(candidate.key, (nodes,), 0)
            or next(filter(None, users), None)
            or self._usage.purchases.buy_for_all(candidate, demands, nodes)
        )
        return refused or self._take(candidate, place, planned)

    def _take(
        self, candidate: ProviderOffer, place: _Place, planned: PlannedBurst
    ) -> PlannedBurst:
        slot_class, slot = place
        rival = PlannedBurst(candidate, slot)
        rival.grow(planned.nodes)
        for demand in planned.demands:
            rival.add(demand)
        self._index.take(slot_class, slot)
        self._index.leave(slot, rival.nodes)
        self._usage.add(candidate.key, rival.nodes, 1, rival.userids)
        self._trials.note(candidate, (rival.nodes,))
        return rival

    def _find_slot(
        self, candidate: ProviderOffer, planned: PlannedBurst
    ) -> _Place | OfferRejection:
        """Return ranks for a burst on which all fits that fits on the first one.

        So many of nodes that are the same, each of which all the jobs may have.
        """
        offer, nodes, shape = candidate.offer, planned.nodes, planned.slot.shape
        if not offer.shape.holds(shape):
            facts: dict[str, object] = {"has": str(offer.shape), "want": str(shape)}
            return OfferRejection(candidate.key, Reason.SHAPE_MISMATCH, facts)
        if nodes > offer.max_nodes:
            facts = {"most": offer.max_nodes, "need": nodes}
            return OfferRejection(candidate.key, Reason.FEW_NODES, facts)
        refused = self._reservations.busy_or_kept(candidate.key)
        constraints = {demand.request.constraint for demand in planned.demands}
        for slot_class in self._index.free_classes(candidate.provider):
            if slot_class[0] != shape:
                continue
            for slot in self._index.fitting(slot_class, nodes, ""):
                usable = (self._index.usable(slot, each) for each in constraints)
                if min(usable) < nodes:
                    continue
                why = self._trials.why_refused(candidate, slot.name, nodes)
                if why is None:
                    return slot_class, slot
                refused = why
        return refused


def _raced(proposal: Proposal, other: Proposal, race: str) -> Proposal:
    """Return a proposal as one of two of a race."""
    rival = other.lease
    words = (
        f"raced with {rival.id} of {rival.provider}/{rival.offer}: the first that is"
        " online keeps the jobs"
    )
    lease = msgspec.structs.replace(proposal.lease, race=race)
    return msgspec.structs.replace(proposal, lease=lease, race=words)


def _not_raced(refusals: Iterable[OfferRejection]) -> str:
    first = next(iter(refusals), None)
    if first is None:
        return "not raced, as there is no other provider"
    return f"not raced, as {first.offer} is not to be had: {first.text()}"
