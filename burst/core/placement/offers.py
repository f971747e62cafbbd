# SPDX-License-Identifier: MIT
"""Which offers can be taken now, in the order in which they are preferred."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from burst.config import DeadlineSettings
from burst.core.placement.lease_times import lease_end, offered_run_time
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


class ProviderOffer(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, whose it is, and what a burst of it would be if it is made now."""

    provider: str
    offer: Offer
    lease_end: float
    """When its lease would end; seconds since the epoch, 0 for never."""
    run_time: float
    """For how many seconds jobs could run on it; math.inf without a limit."""
    place: str
    """Where its provider would make it: see `Lease.place`."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer.name}"


class OfferCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """Offers that can be taken now, cheapest first, and why the others cannot."""

    offers: tuple[ProviderOffer, ...]
    refusals: tuple[OfferRejection, ...] = ()
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


def provider_offers(
    offers: Mapping[str, Sequence[Offer] | None],
    places: Mapping[str, str],
    deadlines: DeadlineSettings,
    now: float,
) -> Mapping[str, Sequence[ProviderOffer] | None]:
    """Return the offers of each provider, None where they could not be read yet.

    `places` are where the providers make bursts, by the provider's name.
    """

    def made(provider: str, offer: Offer) -> ProviderOffer:
        end = lease_end(offer, deadlines.lease, now)
        return ProviderOffer(
            provider=provider,
            offer=offer,
            lease_end=end,
            run_time=offered_run_time(offer, end, deadlines, now),
            place=places.get(provider, ""),
        )

    return {
        name: None if its is None else [made(name, offer) for offer in its]
        for name, its in offers.items()
    }


def offer_catalog(
    offers: Mapping[str, Sequence[ProviderOffer] | None],
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
        for candidate in its_offers or ():
            offer = candidate.offer
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


def _preferred(offers: Iterable[ProviderOffer]) -> list[ProviderOffer]:
    return sorted(
        offers, key=lambda candidate: (candidate.offer.price, candidate.offer.join_time)
    )
