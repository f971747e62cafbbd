# SPDX-License-Identifier: MIT
"""Whether an offer or a burst is one that the user of a job wants."""

from __future__ import annotations

from burst.core.isolated.placement import burst_mode
from burst.core.placement.offers import ProviderOffer
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import BurstPreferences


def accepts(preferences: BurstPreferences, provider: str, price: float) -> bool:
    """Tell whether provider and price, per node and hour, are as the user wants."""
    cheap = preferences.max_price is None or price <= preferences.max_price
    return cheap and preferences.provider in {"", provider}


def why_unwanted(
    preferences: BurstPreferences, candidate: ProviderOffer
) -> OfferRejection | None:
    """Return why the user does not want an offer, None if he does."""
    price = candidate.offer.price
    if preferences.provider not in {"", candidate.provider}:
        return OfferRejection(
            candidate.key, Reason.OTHER_PROVIDER, {"preferred": preferences.provider}
        )
    if not accepts(preferences, candidate.provider, price):
        facts = {"price": price, "most": preferences.max_price}
        return OfferRejection(candidate.key, Reason.PRICE_TOO_HIGH, facts)
    if burst_mode(preferences, candidate.offer) is None:
        isolated = preferences.mode == "isolated"
        return OfferRejection(
            candidate.key, Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED
        )
    return None
