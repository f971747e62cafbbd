# SPDX-License-Identifier: MIT
"""What providers offer, and what a burst of each offer would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.plan.lease_times import lease_end, offered_run_time, time_left
from burst.model.burst import PriceSource
from burst.provider import Offer


class ProviderOffer(msgspec.Struct, frozen=True, kw_only=True):
    """An offer of a provider, and what a burst of it would be if it is made now."""

    provider: str
    offer: Offer
    lease_end: float
    """When its lease would end; seconds since the epoch, 0 for never."""
    run_time: float
    """For how many seconds jobs could run on it; math.inf without a limit."""
    longest: float
    """The same, if the lead itself had no end."""
    place: str
    """Where its provider would make it: see `Lease.place`."""
    priced_by: PriceSource = "offer"
    """Where the offer's price came from."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer.name}"


def price_of(
    provider: str, offer: Offer, prices: Mapping[str, float]
) -> tuple[float, PriceSource]:
    """Return what a node of an offer costs in an hour, and where that came from.

    It is the site's price if `[prices]` has one.
    """
    site = prices.get(f"{provider}.{offer.name}")
    return (offer.price, "offer") if site is None else (site, "site")


def provider_offers(
    offers: Mapping[str, Sequence[Offer] | None],
    places: Mapping[str, str],
    settings: Settings,
    now: float,
    lead_ends: float = 0.0,
) -> Mapping[str, Sequence[ProviderOffer] | None]:
    """Return the offers of each provider, None if they could not be read yet.

    `places` tells where each provider makes bursts, by its name; `lead_ends` is
    `LeadIdentity.ends`.
    """
    deadlines, prices = settings.deadlines, settings.prices
    left = time_left(lead_ends, now)

    def made(provider: str, offer: Offer) -> ProviderOffer:
        price, source = price_of(provider, offer, prices)
        if price != offer.price:
            offer = msgspec.structs.replace(offer, price=price)
        end = lease_end(offer, deadlines.lease, now)
        longest = offered_run_time(offer, end, deadlines, now)
        return ProviderOffer(
            provider=provider,
            offer=offer,
            lease_end=lease_end(
                offer, min(deadlines.lease, left + deadlines.drain), now
            ),
            run_time=min(longest, max(0.0, left - offer.join_time)),
            longest=longest,
            place=places.get(provider, ""),
            priced_by=source,
        )

    return {
        name: None if its is None else [made(name, offer) for offer in its]
        for name, its in offers.items()
    }
