# SPDX-License-Identifier: MIT
"""How long a job can run on a burst before its lease ends.

Jobs are not started on a burst from some time before the end of its lease, so that what
runs may come to its end: see `drain_time`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping

from burst.config import DeadlineSettings
from burst.core.placement.offers import OfferCatalog, ProviderOffer, lease_end
from burst.core.placement.plan import Demand
from burst.model.burst import Lease
from burst.model.decision import OfferRejection
from burst.model.fsd import format_fsd
from burst.model.reason import Reason
from burst.model.request import BurstPreferences


def drain_time(created: float, end: float, drain: float) -> float:
    """Return when a burst is drained as its lease ends; math.inf where it never does.

    That is `drain` seconds before the end. Of a lease that is shorter than twice that,
    jobs get the first half: drained when it comes up, it would be paid for in vain.
    """
    if not end:
        return math.inf
    return end - min(drain, (end - created) / 2)


def remaining_run_time(lease: Lease, deadlines: DeadlineSettings, now: float) -> float:
    """Return for how many seconds jobs can run on a live burst, from now on."""
    return drain_time(lease.created, lease.end, deadlines.drain) - now


def run_times(
    catalog: OfferCatalog, deadlines: DeadlineSettings, now: float
) -> Mapping[str, float]:
    """Return for how many seconds jobs can run on a new burst, by offer's key."""

    def of(candidate: ProviderOffer) -> float:
        end = lease_end(candidate.offer, deadlines.lease, now)
        until = drain_time(now, end, deadlines.drain)
        return max(0.0, until - now - candidate.offer.join_time)

    return {candidate.key: of(candidate) for candidate in catalog.known}


class RunTimes:
    """How long bursts have to last for the jobs of one plan, and how long they do."""

    def __init__(self, catalog: OfferCatalog, live: Iterable[float]) -> None:
        """`live` is for how many seconds jobs can run on each live burst."""
        self._catalog = catalog
        self._lasts = sorted({*live, *catalog.run_times.values()})
        self._longest: dict[str, float] = {}

    def longest_offered(self, preferences: BurstPreferences) -> float:
        """Return for how many seconds any offer that a job may have lasts."""
        found = self._longest.get(preferences.provider)
        if found is None:
            lasts = [
                self._on_new(candidate.key) for candidate in self._may_have(preferences)
            ]
            found = self._longest[preferences.provider] = max(lasts, default=0.0)
        return found

    def needed(self, demand: Demand) -> float:
        """Return for how many seconds a burst has to last for a job.

        One without a time limit goes where leases never end, if there is such an offer;
        where all leases end, to one of which at least half is left.
        """
        if demand.duration or demand.job is None:
            return demand.duration
        longest = self.longest_offered(demand.preferences)
        return longest if math.isinf(longest) else longest / 2

    def rank(self, demand: Demand) -> int:
        """Return a number that is the same where the same bursts last long enough."""
        return bisect.bisect_left(self._lasts, self.needed(demand))

    def refuse(self, offer: str, demand: Demand) -> OfferRejection | None:
        """Return why a new burst does not last for a job, None if it does."""
        lasts = self._on_new(offer)
        if lasts >= self.needed(demand):
            return None
        need = format_fsd(demand.duration) if demand.duration else "ever"
        return OfferRejection(
            offer, Reason.LEASE_SHORT, {"most": format_fsd(lasts), "need": need}
        )

    def why_never(self, demand: Demand) -> dict[str, object] | None:
        """Return why no offer could ever last for a job, as facts; None if one may.

        Where it may have no offer at all, it is not for want of time.
        """
        longest = self.longest_offered(demand.preferences)
        if longest >= demand.duration or not any(self._may_have(demand.preferences)):
            return None
        return {"most": format_fsd(longest), "need": format_fsd(demand.duration)}

    def _may_have(self, preferences: BurstPreferences) -> Iterator[ProviderOffer]:
        """Return the offers of the provider that a job asks for."""
        for candidate in self._catalog.known:
            if preferences.provider in {"", candidate.provider}:
                yield candidate

    def _on_new(self, offer: str) -> float:
        return self._catalog.run_times.get(offer, math.inf)
