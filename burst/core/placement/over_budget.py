# SPDX-License-Identifier: MIT
"""Jobs that only a budget keeps from a burst, where their rule fails such jobs.

A job is failed for good, so it is left to wait wherever something else than money may
be what it waits for: a rank slot that is busy, a provider that has not answered or
cools down, a limit that others use up, a record that cannot be read; or a burst that
does nothing any more, whose money comes back.
"""

from __future__ import annotations

import msgspec

from burst.core.isolated.placement import burst_mode
from burst.core.placement.demand import nodes_needed
from burst.core.placement.offers import OfferCatalog, ProviderOffer
from burst.core.placement.plan import Demand
from burst.core.placement.preferences import why_unwanted
from burst.core.placement.purchases import Purchases
from burst.core.placement.slot_index import SlotIndex
from burst.model.decision import Decision
from burst.model.reason import Reason


class Market(msgspec.Struct, frozen=True):
    """What there is to be had, and what money there is for it."""

    catalog: OfferCatalog
    index: SlotIndex
    purchases: Purchases


def fail_over_budget(
    demand: Demand, refused: Decision, market: Market
) -> Decision | None:
    """Return that a job is failed as budgets allow it no nodes; None if it may wait.

    `refused` is what the plan decided on it. Whether own nodes would do is not asked.
    """
    if refused.reason is not Reason.TURNED_DOWN:
        return None
    wish = demand.preferences
    known = {candidate.key: candidate for candidate in market.catalog.known}
    over = None
    for rejection in refused.refusals:
        provider = rejection.offer.partition("/")[0]
        candidate = known.get(rejection.offer)
        if rejection.reason.about_offer.lasting or not wish.takes(provider):
            continue
        if candidate and not _may_ever_serve(candidate, demand, market.index):
            continue
        if candidate is None or rejection.reason is not Reason.OVER_BUDGET:
            return None
        # Rank slots with larger nodes, of which fewer do, may be busy now.
        least = nodes_needed(demand.request, candidate.offer.shape)
        if market.purchases.may_buy_later(candidate, demand, least):
            return None
        over = over or rejection
    if over is None:
        return None
    facts = {"rule": wish.rule, "offer": over.offer, "why": over.text()}
    return Decision(Reason.FAILED_BY_BUDGET, facts, refused.refusals)


def _may_ever_serve(candidate: ProviderOffer, demand: Demand, index: SlotIndex) -> bool:
    """Tell whether an offer may do for a job, were all rank slots free."""
    offer, wish = candidate.offer, demand.preferences
    if why_unwanted(wish, candidate):
        return False
    shapes = [offer.shape]
    if burst_mode(wish, offer) == "joined":
        classes = index.all_classes(candidate.provider)
        shapes = [shape for shape, _ in classes if offer.shape.holds(shape)]
    return any(nodes_needed(demand.request, shape) for shape in shapes)
