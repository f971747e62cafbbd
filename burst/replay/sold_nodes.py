# SPDX-License-Identifier: MIT
"""What nodes the providers of a settings file sell, at which price and how soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.plan.catalog import offer_catalog
from burst.core.plan.failures import Failures
from burst.core.plan.offers import ProviderOffer, provider_offers
from burst.provider import Offer

DEFAULT_PRICE = 1.0
"""Of a node and hour, where neither command nor file says: money is then hours."""


class SoldNodes(msgspec.Struct, frozen=True):
    """What may be bought."""

    price: float = DEFAULT_PRICE
    """Of a node and hour, where no offer is known."""
    offers: tuple[ProviderOffer, ...] = ()
    """Those of a settings file, in the order in which the core takes them."""


def sold_nodes(
    settings: Settings,
    offers: Mapping[str, Sequence[Offer]],
    price: float | None = None,
    boot: float | None = None,
) -> SoldNodes:
    """Return what the providers of a file sell, by the name of each.

    `price` (then there are no fees) and `boot` (seconds) overrule those of all offers.
    Where they are not given, offers of which none has a price cost the lowest of
    `[prices]`, or DEFAULT_PRICE.
    """
    known = provider_offers(offers, {}, settings.deadlines, 0.0, settings.prices)
    found = offer_catalog(known, Failures()).offers
    fees = {} if price is None else {"fee": 0.0}
    if price is None and not any(each.offer.price for each in found):
        price = min(settings.prices.values(), default=DEFAULT_PRICE)
    changes = {"price": price, "join_time": boot}
    given = {key: value for key, value in changes.items() if value is not None} | fees
    changed = tuple(
        msgspec.structs.replace(
            each, offer=msgspec.structs.replace(each.offer, **given)
        )
        for each in found
    )
    first = changed[0].offer.price if changed else price
    return SoldNodes(DEFAULT_PRICE if first is None else first, changed)
