# SPDX-License-Identifier: MIT
"""Which free rank slots of one class a job gets of one offer, or why it gets none."""

from __future__ import annotations

from burst.core.placement.demand import describe_need, nodes_needed
from burst.core.placement.limits import Usage
from burst.core.placement.offers import ProviderOffer
from burst.core.placement.plan import Demand
from burst.core.placement.slot_group import SlotClass
from burst.core.placement.slot_index import SlotIndex, SlotShare
from burst.core.placement.trials import PlanTrials
from burst.model.decision import OfferRejection
from burst.model.reason import Reason


class SlotChooser:
    """Chooses slots that are free while a plan is made. Takes none of them."""

    def __init__(self, index: SlotIndex, trials: PlanTrials, usage: Usage) -> None:
        self._index = index
        self._trials = trials
        self._usage = usage

    def choose(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        slot_class: SlotClass,
        spread: bool,
    ) -> list[SlotShare] | OfferRejection:
        """Return the slots and how many nodes of each; or why there are none.

        The smallest slot that holds all nodes; with `spread` several, largest first,
        where there is none or where the provider has no capacity for so large a burst.
        """
        need = self._nodes_needed(candidate, demand, slot_class)
        if isinstance(need, OfferRejection):
            return need
        most = int(min(candidate.offer.max_nodes, self._usage.largest_burst))
        constraint = demand.request.constraint
        found = None
        if need <= most:
            found = self._smallest(candidate, slot_class, need, constraint)
            if found and not _lacks_capacity(found):
                return found
        if spread:
            size = self._trials.split_size(candidate, most)
            shares = self._index.split_over_slots(slot_class, need, constraint, size)
            if shares:
                refused = (
                    self._trials.why_refused(candidate, slot.name, nodes)
                    for slot, nodes in shares
                )
                return next(filter(None, refused), shares)
            if size < most:
                found = self._trials.why_refused(candidate, "", need)
        return found or self._too_few(candidate, need, spread, (slot_class, constraint))

    def _nodes_needed(
        self, candidate: ProviderOffer, demand: Demand, slot_class: SlotClass
    ) -> int | OfferRejection:
        """Return how many nodes of such slots the job still needs, or why none do."""
        shape, offer = slot_class[0], candidate.offer
        if not offer.shape.holds(shape):
            facts = {"has": str(offer.shape), "want": str(shape)}
            return OfferRejection(candidate.key, Reason.SHAPE_MISMATCH, facts)
        need = nodes_needed(demand.request, shape)
        if not need:
            facts = {"has": str(shape), "want": describe_need(demand.request)}
            return OfferRejection(candidate.key, Reason.NODE_SMALL, facts)
        return need - demand.coming

    def _smallest(
        self,
        candidate: ProviderOffer,
        slot_class: SlotClass,
        nodes: int,
        constraint: str,
    ) -> list[SlotShare] | OfferRejection | None:
        """Return the smallest slot that holds so many nodes, or why none may be used.

        None where no slot holds them.
        """
        refused = None
        for slot in self._index.fitting(slot_class, nodes, constraint):
            refused = self._trials.why_refused(candidate, slot.name, nodes)
            if refused is None:
                return [(slot, nodes)]
        return refused

    def _too_few(
        self,
        candidate: ProviderOffer,
        need: int,
        spread: bool,
        slots: tuple[SlotClass, str],
    ) -> OfferRejection:
        """Return what keeps a job from so many nodes of an offer.

        `slots` are the class of the slots, and the constraint.
        """
        most, limit = candidate.offer.max_nodes, self._usage.largest_burst
        if need > most and not spread:
            facts: dict[str, object] = {"most": most, "need": need}
            return OfferRejection(candidate.key, Reason.FEW_NODES, facts)
        if need > limit and limit < most:
            facts = {"limit": limit, "need": need}
            return OfferRejection(candidate.key, Reason.LIMIT_BURST, facts)
        facts = {"most": self._index.largest_free(*slots), "need": need}
        return OfferRejection(candidate.key, Reason.SLOTS_SMALL, facts)


def _lacks_capacity(found: list[SlotShare] | OfferRejection) -> bool:
    """Tell whether the provider had no capacity for a burst of this size.

    Or has one burst of at least this size at a time, to try whether it has again.
    """
    lacks = (Reason.OFFER_COOLDOWN, Reason.ON_TRIAL)
    return isinstance(found, OfferRejection) and found.reason in lacks
