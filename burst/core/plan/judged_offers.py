# SPDX-License-Identifier: MIT
"""All offers, as they are judged for jobs with the same preferences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from burst.core.plan.demands import Demand
from burst.core.plan.eligible import Eligibility, burst_mode
from burst.core.plan.sources import Source, new_burst
from burst.model.decision import OfferRejection
from burst.model.request import BurstPreferences


class WantedOffers(NamedTuple):
    """All offers, as users with the same preferences see them."""

    offers: tuple[Source, ...]
    """The offers that can be taken now, in the order of the catalog."""
    some_isolated: bool
    """Whether some offer, taken now or later, would be an isolated burst."""
    most_nodes: Mapping[str, int]
    """By provider that these users may have: the nodes of its largest burst."""
    totals: Mapping[str, float]
    """How many nodes there are of each offer of these providers, by `PROVIDER/OFFER`;
    math.inf where that is not known."""
    unknown: bool
    """Whether the offers of a provider that these users may have are not known."""


class JudgedOffers:
    """Compares offers with preferences. Remembers results: most jobs want the same."""

    def __init__(self, eligible: Eligibility) -> None:
        self._eligible, self._catalog = eligible, eligible.catalog
        self._most: dict[str, int] = {}
        for candidate in self._catalog.known:
            offer, most = candidate.offer, self._most.get(candidate.provider, 0)
            largest = min(offer.max_nodes, offer.total or offer.max_nodes)
            self._most[candidate.provider] = max(most, largest)
        self._found: dict[BurstPreferences, WantedOffers] = {}
        self._judged: dict[object, Sequence[tuple[Source, OfferRejection | None]]] = {}

    def wanted(self, preferences: BurstPreferences) -> WantedOffers:
        """Return what is offered to a user with these preferences."""
        found = self._found.get(preferences)
        if found is None:
            found = self._found[preferences] = self._compare(preferences)
        return found

    def judged(self, demand: Demand) -> Sequence[tuple[Source, OfferRejection | None]]:
        """Return the offers that can be taken now, each with why a job may not have it.

        The reason is None if it may. It does not depend on how many nodes of what shape
        the job needs.
        """
        key = (
            demand.preferences,
            self._eligible.run_times.rank(demand),
            demand.job is None,
            demand.isolated is None,
            demand.rest is None,
            demand.userid,
            self._eligible.failures.begun,
        )
        found = self._judged.get(key)
        if found is None:
            why_not = self._eligible.why_not
            offers = self.wanted(demand.preferences).offers
            found = [(source, why_not(demand, source)) for source in offers]
            self._judged[key] = found
        return found

    def _compare(self, preferences: BurstPreferences) -> WantedOffers:
        known = self._catalog.known
        modes = {burst_mode(preferences, each.offer.modes) for each in known}
        takes = preferences.takes
        return WantedOffers(
            offers=tuple(
                new_burst(
                    candidate,
                    burst_mode(preferences, candidate.offer.modes) == "isolated",
                )
                for candidate in self._catalog.offers
            ),
            some_isolated="isolated" in modes,
            most_nodes={name: n for name, n in self._most.items() if takes(name)},
            totals={
                each.key: each.offer.total or math.inf
                for each in known
                if takes(each.provider)
            },
            unknown=any(map(takes, self._catalog.unknown)),
        )
