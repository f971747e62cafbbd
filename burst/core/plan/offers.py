# SPDX-License-Identifier: MIT
"""Which offers can be taken now, in the order in which they are preferred.

`burst.core.plan.planner` takes the first that nothing speaks against for a job.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from types import MappingProxyType

import msgspec

from burst.config import DeadlineSettings
from burst.core.cooldowns import spec_key
from burst.core.plan.lease_times import lease_end, offered_run_time
from burst.core.provider_health import (
    Health,
    OfferHealth,
    cooldown_facts,
    why_unavailable,
)
from burst.model.burst import PriceSource
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import BurstMode
from burst.provider import Offer

_NO_PRICES: Mapping[str, float] = MappingProxyType({})


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """On which terms nodes are to be had, or were."""

    provider: str
    offer: str
    """Its name."""
    price: float = 0.0
    """Per node and hour."""
    priced_by: PriceSource = "offer"
    guests: bool | None = True
    """Whether jobs of guests can run on the nodes; None where an older record does not
    say it."""
    modes: tuple[BurstMode, ...] = ("joined",)

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer}"


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
    priced_by: PriceSource = "offer"
    """Where the offer's price came from."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer.name}"

    @property
    def terms(self) -> Terms:
        """On which terms it is to be had."""
        return Terms(
            provider=self.provider,
            offer=self.offer.name,
            price=self.offer.price,
            priced_by=self.priced_by,
            guests=self.offer.guests,
            modes=self.offer.modes,
        )


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
    trials: Set[str] = frozenset()
    """What one burst tries now: providers, and keys of offers."""
    to_try: Mapping[str, int] = {}
    """Offers whose cooldown is over, by key: one burst of at least so many nodes may be
    made of each, as a trial."""

    def why_refused(
        self, candidate: ProviderOffer, slot: str, nodes: int
    ) -> OfferRejection | None:
        """Return why the provider is not asked for such a burst, None if it may be."""
        aside = self.aside.get(candidate.key)
        if aside and nodes >= aside.nodes:
            if candidate.key in self.trials:
                return on_trial(candidate, f"offer {candidate.key}")
            why = cooldown_facts(candidate.provider, aside)
            return OfferRejection(candidate.key, Reason.OFFER_COOLDOWN, why)
        offer = candidate.offer.name
        for key in (spec_key(offer), spec_key(offer, slot, nodes)):
            if facts := self.refused_specs.get((candidate.provider, key)):
                return OfferRejection(candidate.key, Reason.SPEC_REFUSED, facts)
        return None

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


def price_of(
    provider: str, offer: Offer, prices: Mapping[str, float]
) -> tuple[float, PriceSource]:
    """Return what a node of an offer costs in an hour, and where that came from.

    The site's price, where `[prices]` has one.
    """
    site = prices.get(f"{provider}.{offer.name}")
    return (offer.price, "offer") if site is None else (site, "site")


def on_trial(candidate: ProviderOffer, what: str) -> OfferRejection:
    """Return that one burst tries whether something works again, and others wait."""
    return OfferRejection(candidate.key, Reason.ON_TRIAL, {"what": what})


def provider_offers(
    offers: Mapping[str, Sequence[Offer] | None],
    places: Mapping[str, str],
    deadlines: DeadlineSettings,
    now: float,
    prices: Mapping[str, float] = _NO_PRICES,
) -> Mapping[str, Sequence[ProviderOffer] | None]:
    """Return the offers of each provider, None where they could not be read yet.

    `places` are where the providers make bursts, by the provider's name; `prices` those
    of the site, as `[prices]` has them.
    """

    def made(provider: str, offer: Offer) -> ProviderOffer:
        price, source = price_of(provider, offer, prices)
        if price != offer.price:
            offer = msgspec.structs.replace(offer, price=price)
        end = lease_end(offer, deadlines.lease, now)
        return ProviderOffer(
            provider=provider,
            offer=offer,
            lease_end=end,
            run_time=offered_run_time(offer, end, deadlines, now),
            place=places.get(provider, ""),
            priced_by=source,
        )

    return {
        name: None if its is None else [made(name, offer) for offer in its]
        for name, its in offers.items()
    }


def offer_catalog(
    offers: Mapping[str, Sequence[ProviderOffer] | None],
    health: Mapping[str, Health],
    now: float,
    trials: Set[str] = frozenset(),
) -> OfferCatalog:
    """Sort the offers of each provider, None where one could not be read yet.

    `trials` are those under way (`burst.core.plan.trials.running_trials`).

    Cheapest first; among equal prices the quickest to join, then the order in which
    the providers stand in the settings.
    """
    known: list[ProviderOffer] = []
    usable: list[ProviderOffer] = []
    refusals: list[OfferRejection] = []
    for provider, its_offers in offers.items():
        if its_offers is None:
            facts = {"provider": provider}
            refusals.append(
                OfferRejection(f"{provider}/*", Reason.OFFERS_UNKNOWN, facts)
            )
        held = health.get(provider, Health())
        for candidate in its_offers or ():
            known.append(candidate)
            refusal = _refuse_now(candidate, held, now, trials)
            if refusal:
                refusals.append(refusal)
            else:
                usable.append(candidate)
    aside, to_try = _set_aside(usable, health, now, trials)
    return OfferCatalog(
        offers=tuple(_preferred(usable)),
        refusals=tuple(refusals),
        known=tuple(known),
        unread=frozenset(name for name, its in offers.items() if its is None),
        on_trial=frozenset(
            n for n in offers if n in health and health[n].on_trial(now)
        ),
        refused_specs=_refused_specs(health, now),
        aside=aside,
        trials=trials,
        to_try=to_try,
    )


def _set_aside(
    usable: Iterable[ProviderOffer],
    health: Mapping[str, Health],
    now: float,
    trials: Container[str],
) -> tuple[dict[str, OfferHealth], dict[str, int]]:
    """Return `OfferCatalog.aside` and `OfferCatalog.to_try` of these offers."""
    aside: dict[str, OfferHealth] = {}
    to_try: dict[str, int] = {}
    for candidate in usable:
        held = health.get(candidate.provider, Health())
        small = held.offers.get(candidate.offer.name)
        if small and (small.until > now or candidate.key in trials):
            aside[candidate.key] = small
        elif small:
            to_try[candidate.key] = small.nodes
    return aside, to_try


def _refuse_now(
    candidate: ProviderOffer, held: Health, now: float, trials: Container[str]
) -> OfferRejection | None:
    """Return why no burst of an offer is made now, of whatever size."""
    provider = candidate.provider
    why = why_unavailable(provider, candidate.offer.name, held, now)
    if why:
        return OfferRejection(candidate.key, *why)
    if provider in trials and held.on_trial(now):
        return on_trial(candidate, f"provider {provider}")
    aside = held.offers.get(candidate.offer.name)
    if aside and aside.nodes <= 1 and candidate.key in trials:
        return on_trial(candidate, f"offer {candidate.key}")
    return None


def _refused_specs(
    health: Mapping[str, Health], now: float
) -> dict[tuple[str, str], dict[str, object]]:
    """Return the facts of each refusal of a spec, by provider and the spec's key."""
    return {
        (name, key): {"why": spec.why, "provider": name, "until": spec.until}
        for name, held in health.items()
        for key, spec in held.specs.items()
        if spec.until > now
    }


def _preferred(offers: Iterable[ProviderOffer]) -> list[ProviderOffer]:
    def key(candidate: ProviderOffer) -> tuple[float, float, float]:
        offer = candidate.offer
        return offer.price, offer.fee, offer.join_time

    return sorted(offers, key=key)
