# SPDX-License-Identifier: MIT
"""Whether an offer or a burst is one that a job may have at all, whatever is free."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.core.plan.demands import Demand
from burst.core.plan.offers import OfferCatalog, ProviderOffer, Terms
from burst.model.burst import PRICE_SOURCES, Tag
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import BurstMode, BurstPreferences


class Lender(msgspec.Struct, kw_only=True):
    """A burst, live or planned, by what decides which jobs may be on it."""

    terms: Terms
    userids: frozenset[int] = frozenset()
    """For whose jobs; empty for anybody's."""
    requester: int | None = None
    """Who requested it, and alone may use it, even where users share bursts."""
    tag: Tag | None = None
    """It takes no jobs but those with the same tag, or without one as it has none."""

    def takes(self, demand: Demand, *, share_users: bool) -> bool:
        """Tell whether a job may be on it, whatever is free there."""
        if self.tag != demand.tag:
            return False
        if self.requester not in (None, demand.userid):
            return False
        if not share_users and self.userids and self.userids != {demand.userid}:
            return False
        unknown = demand.preferences.guest and self.terms.guests is None
        if unknown and demand.userid not in self.userids:
            return False  # nodes that were made for a guest are such that his jobs run
        return why_unwanted(demand.preferences, self.terms) is None

    def joins(self, demand: Demand) -> bool:
        """Tell whether the user of a job does not bear its nodes yet, and would."""
        return bool(self.userids) and demand.userid not in self.userids


def burst_mode(
    preferences: BurstPreferences, modes: tuple[BurstMode, ...]
) -> BurstMode | None:
    """Return what a burst of an offer would be for a job; None if it wants none.

    `modes` are those of the offer.
    """
    if not preferences.mode:
        return modes[0]
    return preferences.mode if preferences.mode in modes else None


def why_unwanted(preferences: BurstPreferences, terms: Terms) -> OfferRejection | None:
    """Return why a job does not want nodes on such terms, None if it does."""
    rule, key = preferences.rule, terms.key
    if preferences.provider not in {"", terms.provider}:
        facts: dict[str, object] = {"preferred": preferences.provider}
        return OfferRejection(key, Reason.OTHER_PROVIDER, facts)
    if preferences.offer not in {"", terms.offer}:
        facts = {"preferred": preferences.offer}
        return OfferRejection(key, Reason.OTHER_OFFER, facts)
    if not preferences.takes(terms.provider):
        facts = {"rule": rule, "allowed": ", ".join(preferences.allowed)}
        return OfferRejection(key, Reason.RULE_PROVIDER, facts)
    most = preferences.max_price
    if most is not None and terms.price > most:
        source = PRICE_SOURCES[terms.priced_by]
        facts = {"price": terms.price, "source": source, "most": most, "rule": rule}
        why = Reason.RULE_PRICE if rule else Reason.PRICE_TOO_HIGH
        return OfferRejection(key, why, facts)
    return _why_of_no_use(preferences, terms)


def _why_of_no_use(
    preferences: BurstPreferences, terms: Terms
) -> OfferRejection | None:
    """Return why the job could not run as it is to on nodes on such terms."""
    if preferences.guest and terms.guests is False:
        # Its nodes would be paid for, and the job would fail on them.
        return OfferRejection(terms.key, Reason.NO_GUESTS)
    if burst_mode(preferences, terms.modes) is None:
        isolated = preferences.mode == "isolated"
        why = Reason.NOT_ISOLATED if isolated else Reason.NOT_JOINED
        return OfferRejection(terms.key, why)
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
        known = self._catalog.known
        modes = {burst_mode(preferences, each.offer.modes) for each in known}
        takes = preferences.takes
        return WantedOffers(
            offers=tuple(
                WantedOffer(
                    candidate,
                    why_unwanted(preferences, candidate.terms),
                    burst_mode(preferences, candidate.offer.modes) == "isolated",
                )
                for candidate in self._catalog.offers
            ),
            some_isolated="isolated" in modes,
            most_nodes={name: n for name, n in self._most.items() if takes(name)},
            unread=any(map(takes, self._catalog.unread)),
        )
