# SPDX-License-Identifier: MIT
"""For how long bursts have to last for the jobs of a plan, and which offers do."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator

from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.demands import Demand
from burst.core.plan.offers import ProviderOffer
from burst.model.fsd import format_fsd
from burst.model.request import BurstPreferences


class RunTimes:
    """How long bursts have to last for the jobs of one plan, and how long they do."""

    def __init__(self, catalog: OfferCatalog, live: Iterable[float]) -> None:
        """`live` is for how many seconds jobs can run on each live burst."""
        self._catalog = catalog
        self._lasts = sorted(
            {*live, *(candidate.run_time for candidate in catalog.known)}
        )
        self._longest: dict[tuple[str, tuple[str, ...]], float] = {}

    def needed(self, demand: Demand) -> float:
        """Return for how many seconds a burst has to last for a job.

        One without a time limit goes where leases never end, if there is such an offer;
        where all leases end, to one of which at least half is left.
        """
        if demand.duration or demand.job is None:
            return demand.duration
        longest = self._longest_offered(demand.preferences)
        return longest if math.isinf(longest) else longest / 2

    def rank(self, demand: Demand) -> int:
        """Return a number that is the same where the same bursts last long enough."""
        return bisect.bisect_left(self._lasts, self.needed(demand))

    def why_never(self, demand: Demand) -> dict[str, object] | None:
        """Return why no offer could ever last for a job, as facts; None if one may.

        Where it may have no offer at all, it is not for want of time.
        """
        longest = self._longest_offered(demand.preferences)
        if longest >= demand.duration or not any(self._may_have(demand.preferences)):
            return None
        return {"most": format_fsd(longest)}

    def _longest_offered(self, preferences: BurstPreferences) -> float:
        """Return for how many seconds any offer that a job may have lasts."""
        wanted = preferences.provider, preferences.allowed
        found = self._longest.get(wanted)
        if found is None:
            lasts = [candidate.run_time for candidate in self._may_have(preferences)]
            found = self._longest[wanted] = max(lasts, default=0.0)
        return found

    def _may_have(self, preferences: BurstPreferences) -> Iterator[ProviderOffer]:
        """Return the offers of the providers that a job may have."""
        for candidate in self._catalog.known:
            if preferences.takes(candidate.provider):
                yield candidate
