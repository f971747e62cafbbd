# SPDX-License-Identifier: MIT
"""The offers that can be taken now, in the order in which they are preferred.

`burst.core.plan.planner` takes the first offer that is not refused for a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from burst.config import Settings
from burst.core.plan.failures import Failures, coming_bursts
from burst.core.plan.offers import ProviderOffer, provider_offers
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.decision import OfferRejection
from burst.model.reason import Reason


class OfferCatalog(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Offers that can be taken now, cheapest first, and why the others cannot."""

    offers: tuple[ProviderOffer, ...]
    refusals: tuple[OfferRejection, ...] = ()
    known: tuple[ProviderOffer, ...] = ()
    """All offers, including those that cannot be taken now."""
    unread: frozenset[str] = frozenset()
    """Providers that have not told their offers yet."""
    disabled: frozenset[str] = frozenset()
    """Providers that the settings have, and do not enable."""
    failures: Failures
    """What is not tried now; a plan adds the trials that it begins."""

    @property
    def providers(self) -> frozenset[str]:
        """Names of all providers that have offers, or may have once they answer."""
        return self.unread.union(candidate.provider for candidate in self.known)

    @cached_property
    def most_nodes(self) -> Mapping[str, int]:
        """By provider: the nodes of the largest burst that it may make."""
        most: dict[str, int] = {}
        for each in self.known:
            most[each.provider] = max(most.get(each.provider, 0), each.most)
        return most

    @property
    def unknown(self) -> frozenset[str]:
        """Names of all providers whose offers are not known, and may be later."""
        return self.unread | self.disabled


def read_catalog(
    records: RecordsView, world: World, settings: Settings, now: float
) -> OfferCatalog:
    """Return which offers can be taken now, and why the others cannot."""
    offered = {name: view.offers for name, view in world.providers.items()}
    catalog = offer_catalog(
        provider_offers(
            offered,
            world.places,
            settings,
            now,
            world.identity.ends,
        ),
        Failures(records.health, coming_bursts(records.live), now),
    )
    tables = settings.providers.items()
    disabled = [name for name, table in tables if not table.enabled]
    further = tuple(
        OfferRejection(f"{name}/*", Reason.NOT_ENABLED, {"provider": name})
        for name in disabled
    )
    return msgspec.structs.replace(
        catalog, refusals=catalog.refusals + further, disabled=frozenset(disabled)
    )


def offer_catalog(
    offers: Mapping[str, Sequence[ProviderOffer] | None], failures: Failures
) -> OfferCatalog:
    """Sort the offers of each provider; None stands for offers that are not read yet.

    The cheapest comes first: the lowest price, then the lowest fee. Among equals the
    quickest to join comes first, then the order of the providers in the settings.
    """
    known: list[ProviderOffer] = []
    usable: list[ProviderOffer] = []
    refusals: list[OfferRejection] = []
    for name, its in offers.items():
        if its is None:
            facts = {"provider": name}
            refusals.append(OfferRejection(f"{name}/*", Reason.OFFERS_UNKNOWN, facts))
        for candidate in its or ():
            known.append(candidate)
            refusal = failures.why_not(candidate)
            if refusal:
                refusals.append(refusal)
            else:
                usable.append(candidate)
    return OfferCatalog(
        offers=tuple(sorted(usable, key=_dearness)),
        refusals=tuple(refusals),
        known=tuple(known),
        unread=frozenset(name for name, its in offers.items() if its is None),
        failures=failures,
    )


def _dearness(candidate: ProviderOffer) -> tuple[float, float, float]:
    offer = candidate.offer
    return offer.price, offer.fee, offer.join_time
