# SPDX-License-Identifier: MIT
"""What providers offer, what a burst of each offer would be, and how long it lasts.

No jobs are started on a burst from some time before the end of its lease, so that
running jobs can end: see `drain_time`. Times are seconds since the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import DeadlineSettings, Settings
from burst.model.burst import Lease, PriceSource
from burst.provider import Offer

# What ends in the year 10,000 or later never ends; no date can show it.
_END_OF_TIME = 253_402_300_800.0


def time_left(lead_ends: float, now: float) -> float:
    """Return for how many seconds the lead itself runs; math.inf if that is not known.

    `lead_ends` is `LeadIdentity.ends`, as it was first read. A lead that outlives it
    had its time limit extended.
    """
    return lead_ends - now if lead_ends > now else math.inf


def lease_end(offer: Offer, longest: float, now: float) -> float:
    """Return when a burst of the offer ends if it is made now; 0 for never.

    `longest` is how long a burst may live by the settings and by the end of the lead,
    in seconds, math.inf for ever.
    """
    end = now + min(longest, offer.lifetime or math.inf)
    return 0.0 if end >= _END_OF_TIME else end


def drain_time(created: float, end: float, drain: float) -> float:
    """Return when a burst is drained as its lease ends; math.inf where it never does.

    That is `drain` seconds before the end. If the lease is shorter than twice that,
    jobs get its first half: a burst that is drained as soon as it is online would cost
    money without use.
    """
    if not end:
        return math.inf
    return end - min(drain, (end - created) / 2)


def remaining_run_time(lease: Lease, deadlines: DeadlineSettings, now: float) -> float:
    """Return for how many seconds jobs can run on a live burst, from now on."""
    return drain_time(lease.created, lease.end, deadlines.drain) - now


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

    @property
    def most(self) -> int:
        """The most nodes that one burst of it may have."""
        return min(self.offer.max_nodes, self.offer.total or self.offer.max_nodes)


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
        drained = drain_time(now, end, deadlines.drain)
        longest = max(0.0, drained - now - offer.join_time)
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
