# SPDX-License-Identifier: MIT
"""Which offers can be taken now, in the order in which they are preferred."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from burst.core.limits import Health, unavailable
from burst.model.reason import Reason, Refusal
from burst.provider import Offer


class Priced(msgspec.Struct, frozen=True):
    """An offer and whose it is."""

    provider: str
    offer: Offer

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer.name}"


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """Offers that can be taken now, cheapest first, and why the others cannot."""

    offers: tuple[Priced, ...]
    refusals: tuple[Refusal, ...] = ()
    known: tuple[Priced, ...] = ()
    """All offers, those that cannot be taken now too."""

    @property
    def providers(self) -> frozenset[str]:
        """Names of all that offer anything."""
        return frozenset(priced.provider for priced in self.known)


def open_market(
    offers: Mapping[str, Sequence[Offer] | None],
    health: Mapping[str, Health],
    now: float,
) -> Market:
    """Sort the offers of each provider, None where one could not be read yet.

    Cheapest first; among equal prices the quickest to join, then the order in which
    the providers stand in the settings.
    """
    known: list[Priced] = []
    usable: list[Priced] = []
    refusals: list[Refusal] = []
    for provider, its_offers in offers.items():
        if its_offers is None:
            facts = {"provider": provider}
            refusals.append(Refusal(f"{provider}/*", Reason.UNREAD, facts))
        for offer in its_offers or ():
            priced = Priced(provider, offer)
            known.append(priced)
            held = health.get(provider, Health())
            why = unavailable(provider, offer.name, held, now)
            if why:
                refusals.append(Refusal(priced.key, *why))
            else:
                usable.append(priced)
    return Market(
        offers=tuple(_preferred(usable)), refusals=tuple(refusals), known=tuple(known)
    )


def lease_end(offer: Offer, longest: float, now: float) -> float:
    """Return when a burst of the offer ends if it is made now; 0 for never.

    `longest` is how long a burst may live by the settings, in seconds, math.inf for
    ever. Times are seconds since the epoch.
    """
    end = now + min(longest, offer.lifetime or math.inf)
    return 0.0 if math.isinf(end) else end


def _preferred(offers: Iterable[Priced]) -> list[Priced]:
    return sorted(
        offers, key=lambda priced: (priced.offer.price, priced.offer.join_time)
    )
