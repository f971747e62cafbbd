# SPDX-License-Identifier: MIT
"""Whether an offer or a burst is one that the user of a job wants."""

from __future__ import annotations

from burst.core.isolated.placement import mode_of
from burst.core.placement.offers import Priced
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import Wish


def suits(wish: Wish, provider: str, price: float) -> bool:
    """Tell whether provider and price, per node and hour, are as the user wants."""
    cheap = wish.max_price is None or price <= wish.max_price
    return cheap and wish.provider in {"", provider}


def unwished(wish: Wish, priced: Priced) -> OfferRejection | None:
    """Return why the user does not want an offer, None if he does."""
    price = priced.offer.price
    if wish.provider not in {"", priced.provider}:
        return OfferRejection(
            priced.key, Reason.OTHER_PROVIDER, {"wish": wish.provider}
        )
    if not suits(wish, priced.provider, price):
        facts = {"price": price, "most": wish.max_price}
        return OfferRejection(priced.key, Reason.PRICE_TOO_HIGH, facts)
    if mode_of(wish, priced.offer) is None:
        isolated = wish.mode == "isolated"
        return OfferRejection(
            priced.key, Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED
        )
    return None
