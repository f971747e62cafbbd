# SPDX-License-Identifier: MIT
"""Trials: what had failed gets one burst, and no other before that came online.

A trial begins when the pause of a provider or the cooldown of an offer is over. It is
the next burst that is made, or the bursts that one job gets together. While it is being
made or joins, others wait; if it fails, a pause begins anew; if it is not needed any
more, another one is the trial. Nothing is kept of it but the failure that it follows:
so it outlives the daemon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from burst.core.plan.offers import OfferCatalog, ProviderOffer, on_trial
from burst.core.provider_health import Health
from burst.core.worth.life import COMES_UP
from burst.model.burst import Burst
from burst.model.decision import OfferRejection


def coming_bursts(live: Iterable[Burst]) -> tuple[Burst, ...]:
    """Return the bursts that are being made or join.

    Without those in quarantine: nobody knows when their trial would end.
    """
    return tuple(b for b in live if b.state in COMES_UP and not b.quarantined)


def running_trials(
    health: Mapping[str, Health], coming: Iterable[Burst], now: float
) -> frozenset[str]:
    """Return which trials are under way: providers, and `PROVIDER/OFFER`."""
    found: set[str] = set()
    for burst in coming:
        lease = burst.lease
        held = health.get(lease.provider, Health())
        if held.on_trial(now):
            found.add(lease.provider)
        aside = held.offers.get(lease.offer)
        if aside and aside.until <= now and lease.nodes >= aside.nodes:
            found.add(f"{lease.provider}/{lease.offer}")
    return frozenset(found)


class PlanTrials:
    """The trials that one plan begins; and what of an offer may be asked for."""

    def __init__(self, catalog: OfferCatalog) -> None:
        self.catalog = catalog
        self._providers: set[str] = set()
        self._offers: set[str] = set()

    def split_size(self, candidate: ProviderOffer, nodes: int) -> int:
        """See `OfferCatalog.split_size`."""
        return self.catalog.split_size(candidate, nodes)

    def why_tried(self, candidate: ProviderOffer) -> OfferRejection | None:
        """Return why nothing more of a provider is asked for in this plan."""
        if candidate.provider in self._providers:
            return on_trial(candidate, f"provider {candidate.provider}")
        return None

    def why_refused(
        self, candidate: ProviderOffer, slot: str, nodes: int, before: int = 0
    ) -> OfferRejection | None:
        """Return why such a burst is not asked for, None if it may be.

        `before` is how many nodes it has in this plan already.
        """
        refused = self.catalog.why_refused(candidate, slot, nodes)
        if refused or candidate.key not in self._offers:
            return refused
        least = max(1, self.catalog.to_try[candidate.key])
        another = before < least <= nodes
        return on_trial(candidate, f"offer {candidate.key}") if another else None

    def note(self, candidate: ProviderOffer, sizes: Sequence[int]) -> None:
        """Take in that bursts of these sizes are asked for."""
        if candidate.provider in self.catalog.on_trial:
            self._providers.add(candidate.provider)
        least = self.catalog.to_try.get(candidate.key)
        if least is not None and max(sizes) >= least:
            self._offers.add(candidate.key)
