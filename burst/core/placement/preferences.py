# SPDX-License-Identifier: MIT
"""Whether an offer or a burst is one that the user of a job wants."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.core.isolated.placement import burst_mode
from burst.core.placement.offers import OfferCatalog, ProviderOffer
from burst.model.burst import PRICE_SOURCES
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import BurstPreferences


def accepts(preferences: BurstPreferences, provider: str, price: float) -> bool:
    """Tell whether provider and price, per node and hour, are as the user wants."""
    cheap = preferences.max_price is None or price <= preferences.max_price
    return cheap and preferences.takes(provider)


def why_unwanted(
    preferences: BurstPreferences, candidate: ProviderOffer
) -> OfferRejection | None:
    """Return why the user does not want an offer, None if he does."""
    price = candidate.offer.price
    if preferences.provider not in {"", candidate.provider}:
        return OfferRejection(
            candidate.key, Reason.OTHER_PROVIDER, {"preferred": preferences.provider}
        )
    if preferences.offer not in {"", candidate.offer.name}:
        return OfferRejection(
            candidate.key, Reason.OTHER_OFFER, {"preferred": preferences.offer}
        )
    rule = preferences.rule
    if not preferences.takes(candidate.provider):
        allowed = {"rule": rule, "allowed": ", ".join(preferences.allowed)}
        return OfferRejection(candidate.key, Reason.RULE_PROVIDER, allowed)
    if not accepts(preferences, candidate.provider, price):
        facts = {
            "price": price,
            "source": PRICE_SOURCES[candidate.priced_by],
            "most": preferences.max_price,
            "rule": rule,
        }
        why = Reason.RULE_PRICE if rule else Reason.PRICE_TOO_HIGH
        return OfferRejection(candidate.key, why, facts)
    return _why_of_no_use(preferences, candidate)


def _why_of_no_use(
    preferences: BurstPreferences, candidate: ProviderOffer
) -> OfferRejection | None:
    """Return why the job could not run as it is to on nodes of an offer."""
    if preferences.guest and not candidate.offer.guests:
        # Its nodes would be paid for, and the job would fail on them.
        return OfferRejection(candidate.key, Reason.NO_GUESTS)
    if burst_mode(preferences, candidate.offer) is None:
        isolated = preferences.mode == "isolated"
        return OfferRejection(
            candidate.key, Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED
        )
    return None


class WantedOffer(msgspec.Struct, frozen=True):
    """An offer that can be taken now, as a user with certain preferences sees it."""

    candidate: ProviderOffer
    unwanted: OfferRejection | None
    """Why the user does not want it."""
    isolated: bool
    """Whether a burst of it would be an isolated one."""


class WantedOffers(msgspec.Struct, frozen=True):
    """All that is offered, as users with the same preferences see it."""

    offers: tuple[WantedOffer, ...]
    """Those that can be taken now, in the order of the catalog."""
    some_isolated: bool
    """Whether some offer, taken now or later, would be an isolated burst."""
    most_nodes: Mapping[str, int]
    """By provider that they may have: the nodes of its largest burst."""
    unread: bool
    """Whether a provider that they may have has not told its offers yet."""


class OfferSorter:
    """Compares offers with preferences. Remembers results: most jobs want the same."""

    def __init__(self, catalog: OfferCatalog) -> None:
        self._catalog = catalog
        self._most: dict[str, int] = {}
        for candidate in catalog.known:
            most = self._most.get(candidate.provider, 0)
            self._most[candidate.provider] = max(most, candidate.offer.max_nodes)
        self._found: dict[BurstPreferences, WantedOffers] = {}

    def wanted(self, preferences: BurstPreferences) -> WantedOffers:
        """Return what is offered to a user with these preferences."""
        found = self._found.get(preferences)
        if found is None:
            found = self._found[preferences] = self._compare(preferences)
        return found

    def _compare(self, preferences: BurstPreferences) -> WantedOffers:
        modes = {burst_mode(preferences, each.offer) for each in self._catalog.known}
        takes = preferences.takes
        return WantedOffers(
            offers=tuple(
                WantedOffer(
                    candidate,
                    why_unwanted(preferences, candidate),
                    burst_mode(preferences, candidate.offer) == "isolated",
                )
                for candidate in self._catalog.offers
            ),
            some_isolated="isolated" in modes,
            most_nodes={name: n for name, n in self._most.items() if takes(name)},
            unread=any(map(takes, self._catalog.unread)),
        )
