# SPDX-License-Identifier: MIT
"""How long bursts have to last for the jobs of a plan, and which offers do."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator

from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.demands import Demand
from burst.core.plan.offers import ProviderOffer
from burst.model.fsd import format_fsd
from burst.model.request import BurstPreferences


class RunTimes:
    """How long bursts have to last for the jobs of one plan, and how long they do."""

    def __init__(
        self,
        catalog: OfferCatalog,
        live: Iterable[float] = (),
        could_have: Callable[[Demand, ProviderOffer], bool] = lambda *_: True,
    ) -> None:
        """`live` is for how many seconds jobs can run on each live burst; `could_have`
        tells whether a job could have an offer that lasts long enough.
        """
        self._could_have = could_have
        self._longest_first = sorted(catalog.known, key=lambda each: -each.run_time)
        self._lasts = sorted({*live, *(each.run_time for each in self._longest_first)})
        self._longest: dict[object, float] = {}

    def needed(self, demand: Demand) -> float:
        """Return for how many seconds a burst has to last for a job.

        A job without a time limit goes where leases never end, if there is such an
        offer that it could have. If all those leases end, half of the longest one has
        to be left.
        """
        if demand.duration or demand.job is None:
            return demand.duration
        longest = self._longest_offered(demand)
        return longest if math.isinf(longest) else longest / 2

    def rank(self, demand: Demand) -> int:
        """Return a number that is equal for jobs that the same bursts last for."""
        return bisect.bisect_left(self._lasts, self.needed(demand))

    def why_never(self, demand: Demand) -> dict[str, object] | None:
        """Return why no offer could ever last for a job, as facts; None if one may.

        Also None if it may have no offer at all: then time is not the reason. The end
        of the lead itself does not count: it comes nearer while a job waits, and may be
        put off.
        """
        lasts = [each.longest for each in self._may_have(demand.preferences)]
        if max(lasts, default=math.inf) >= demand.duration:
            return None
        return {"most": format_fsd(max(lasts))}

    def _longest_offered(self, demand: Demand) -> float:
        """Return how many seconds the longest offer lasts that a job could have.

        If it could have none, all offers of its providers tell how long bursts last.
        """
        key = (
            demand.preferences,
            demand.request,
            demand.rest,
            demand.isolated is None,
            demand.userid,
        )
        found = self._longest.get(key)
        if found is None:
            found = self._longest[key] = self._find_longest(demand)
        return found

    def _find_longest(self, demand: Demand) -> float:
        offers = [*self._may_have(demand.preferences)]
        longest = offers[0].run_time if offers else 0.0
        if not offers or offers[-1].run_time == longest:
            return longest
        could = (each for each in offers if self._could_have(demand, each))
        return next((each.run_time for each in could), longest)

    def _may_have(self, preferences: BurstPreferences) -> Iterator[ProviderOffer]:
        """Return the offers of the providers that a job may have, the longest first."""
        for candidate in self._longest_first:
            if preferences.takes(candidate.provider):
                yield candidate
