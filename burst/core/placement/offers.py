# SPDX-License-Identifier: MIT
"""Which offers can be taken now, in the order in which they are preferred."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from burst.core.provider_health import (
    Health,
    OfferHealth,
    cooldown_facts,
    spec_key,
    why_unavailable,
)
from burst.model.burst import Burst, State
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.provider import Offer


class ProviderOffer(msgspec.Struct, frozen=True):
    """An offer and whose it is."""

    provider: str
    offer: Offer

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer.name}"


class OfferCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """Offers that can be taken now, cheapest first, and why the others cannot."""

    offers: tuple[ProviderOffer, ...]
    refusals: tuple[OfferRejection, ...] = ()
    run_times: Mapping[str, float] = {}
    """By key of an offer: for how many seconds jobs can run on a new burst of it, where
    that is limited."""
    known: tuple[ProviderOffer, ...] = ()
    """All offers, those that cannot be taken now too."""
    unread: frozenset[str] = frozenset()
    """Providers that have not told their offers yet."""
    on_trial: frozenset[str] = frozenset()
    """Providers that may have one burst, which shows whether they work again."""
    refused_specs: Mapping[tuple[str, str], Mapping[str, object]] = {}
    """Bursts that a provider refused, by its name and `spec_key`; what to tell."""

    aside: Mapping[str, OfferHealth] = {}
    """By key of an offer: of what size bursts of it are not made for a while."""

    def why_refused(
        self, candidate: ProviderOffer, slot: str, nodes: int
    ) -> OfferRejection | None:
        """Return why the provider is not asked for such a burst, None if it may be."""
        aside = self.aside.get(candidate.key)
        if aside and nodes >= aside.nodes:
            return OfferRejection(
                candidate.key, Reason.OFFER_COOLDOWN, cooldown_facts(aside)
            )
        key = candidate.provider, spec_key(candidate.offer.name, slot, nodes)
        facts = self.refused_specs.get(key)
        return (
            OfferRejection(candidate.key, Reason.SPEC_REFUSED, facts) if facts else None
        )

    def split_size(self, candidate: ProviderOffer, nodes: int) -> int:
        """Return the most nodes of each burst of a job that gets several.

        Half of what there was no capacity for: less by one each time would be asked
        for as often as the job needs nodes.
        """
        aside = self.aside.get(candidate.key)
        return min(nodes, aside.nodes // 2) if aside else nodes

    @property
    def providers(self) -> frozenset[str]:
        """Names of all that offer anything, or may once they have answered."""
        return self.unread.union(candidate.provider for candidate in self.known)


def provisioning_providers(live: Iterable[Burst]) -> set[str]:
    """Return the providers of which a burst is being made, by their names."""
    asked = (State.NEW, State.PROVISION)
    return {burst.lease.provider for burst in live if burst.state in asked}


def offer_catalog(
    offers: Mapping[str, Sequence[Offer] | None],
    health: Mapping[str, Health],
    now: float,
    asked: Container[str] = (),
) -> OfferCatalog:
    """Sort the offers of each provider, None where one could not be read yet.

    `asked` are providers of which a burst is being made.

    Cheapest first; among equal prices the quickest to join, then the order in which
    the providers stand in the settings.
    """
    known: list[ProviderOffer] = []
    usable: list[ProviderOffer] = []
    refusals: list[OfferRejection] = []
    aside: dict[str, OfferHealth] = {}
    for provider, its_offers in offers.items():
        if its_offers is None:
            facts = {"provider": provider}
            refusals.append(
                OfferRejection(f"{provider}/*", Reason.OFFERS_UNKNOWN, facts)
            )
        for offer in its_offers or ():
            candidate = ProviderOffer(provider, offer)
            known.append(candidate)
            held = health.get(provider, Health())
            why = why_unavailable(provider, offer.name, held, now)
            if not why and provider in asked and held.on_trial(now):
                why = Reason.ON_TRIAL, {"provider": provider}
            if why:
                refusals.append(OfferRejection(candidate.key, *why))
            else:
                usable.append(candidate)
                small = held.offers.get(offer.name)
                if small and small.until > now:
                    aside[candidate.key] = small
    return OfferCatalog(
        offers=tuple(_preferred(usable)),
        refusals=tuple(refusals),
        known=tuple(known),
        unread=frozenset(name for name, its in offers.items() if its is None),
        on_trial=frozenset(
            n for n in offers if n in health and health[n].on_trial(now)
        ),
        refused_specs={
            (name, key): {"why": spec.why, "provider": name, "until": spec.until}
            for name, held in health.items()
            for key, spec in held.specs.items()
            if spec.until > now
        },
        aside=aside,
    )


# What ends in the year 10,000 or later never ends; no date can show it.
_END_OF_TIME = 253_402_300_800.0


def lease_end(offer: Offer, longest: float, now: float) -> float:
    """Return when a burst of the offer ends if it is made now; 0 for never.

    `longest` is how long a burst may live by the settings, in seconds, math.inf for
    ever. Times are seconds since the epoch.
    """
    end = now + min(longest, offer.lifetime or math.inf)
    return 0.0 if end >= _END_OF_TIME else end


def _preferred(offers: Iterable[ProviderOffer]) -> list[ProviderOffer]:
    return sorted(
        offers, key=lambda candidate: (candidate.offer.price, candidate.offer.join_time)
    )
