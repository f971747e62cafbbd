# SPDX-License-Identifier: MIT
"""The offers that can be taken now, and what is not tried as it has failed.

`burst.core.plan.planner` takes the first offer that is not refused for a job.

A trial begins when the pause of a provider or the cooldown of an offer is over. It is
the next burst that is made, or the bursts that one job gets together. While it is being
made or joins, other bursts wait. If it fails, a new pause begins; if it is no longer
needed, another burst is the trial. Only the failure before it is on record, so a trial
outlives the daemon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import msgspec

from burst.config import Settings
from burst.core.cooldowns import spec_key
from burst.core.lifecycle import BEFORE_ONLINE
from burst.core.plan.offers import ProviderOffer, provider_offers
from burst.core.provider_health import (
    FailureKind,
    FailureRecord,
    Health,
    cooldown_facts,
    why_unavailable,
)
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.decision import OfferRejection
from burst.model.reason import Reason

_NO_HEALTH: Mapping[str, Health] = MappingProxyType({})


def coming_bursts(live: Iterable[Burst]) -> tuple[Burst, ...]:
    """Return the bursts that are being made or join.

    Quarantined bursts are left out: nobody knows when their trial would end.
    """
    return tuple(b for b in live if b.state in BEFORE_ONLINE and not b.quarantined)


def running_trials(
    health: Mapping[str, Health], coming: Iterable[Burst], now: float
) -> frozenset[str]:
    """Return the trials that are under way, as `PROVIDER` or `PROVIDER/OFFER`."""
    found: set[str] = set()
    for burst in coming:
        lease = burst.lease
        held = health.get(lease.provider, Health())
        if held.on_trial(now):
            found.add(lease.provider)
        aside = held.row(FailureKind.OFFER, lease.offer)
        if aside and aside.until <= now and lease.nodes >= aside.nodes:
            found.add(lease.key)
    return frozenset(found)


class Failures:
    """What providers failed at, and the trials that one plan begins."""

    def __init__(
        self,
        health: Mapping[str, Health] = _NO_HEALTH,
        coming: Iterable[Burst] = (),
        now: float = 0.0,
    ) -> None:
        """`coming` are the live bursts that are being made or join."""
        self._health, self._now = health, now
        self._running = running_trials(health, coming, now)
        self._begun: set[str] = set()
        """Providers and keys of offers whose trial this plan begins."""

    def why_not(
        self, candidate: ProviderOffer, slot: str = "", nodes: int = 0, before: int = 0
    ) -> OfferRejection | None:
        """Return why no burst of `nodes` nodes of an offer is made in a slot now.

        None if one may be. Without `nodes`, the reason why none of any size is made.
        `before` is how many nodes the burst has in this plan already.
        """
        provider = candidate.provider
        held = self._health.get(provider)
        if held is None:
            return None
        if why := why_unavailable(provider, candidate.offer.name, held, self._now):
            return OfferRejection(candidate.key, *why)
        trials = self._running | self._begun
        if not before and provider in trials and held.on_trial(self._now):
            return _on_trial(candidate, f"provider {provider}")
        return self._why_not_size(candidate, nodes, before) or self._why_not_spec(
            candidate, spec_key(candidate.offer.name, slot, nodes)
        )

    def knows(self, provider: str) -> bool:
        """Tell whether failures may be a reason to make no burst of a provider."""
        return provider in self._health

    def awaits_trial(self, candidate: ProviderOffer) -> bool:
        """Tell whether a new burst would be the trial of the offer or its provider."""
        aside = self._aside(candidate)
        cooled = aside is not None and aside.until <= self._now
        return cooled or self.tries(candidate.provider)

    @property
    def begun(self) -> int:
        """How many trials this plan has begun."""
        return len(self._begun)

    def tries(self, provider: str) -> bool:
        """Tell whether a new burst would be the trial of the provider."""
        held = self._health.get(provider)
        return held is not None and held.on_trial(self._now)

    def begin(self, candidate: ProviderOffer, sizes: Sequence[int]) -> None:
        """Note that bursts of these sizes are made: they may be the trial."""
        if self.tries(candidate.provider):
            self._begun.add(candidate.provider)
        aside = self._aside(candidate)
        if aside and max(sizes) >= aside.nodes:
            self._begun.add(candidate.key)

    def split_size(self, candidate: ProviderOffer, nodes: int) -> int:
        """Return the most nodes of each burst of a job that gets several.

        After a lack of capacity that is half of the size that failed. A size that is
        less by one each time could take as many attempts as the job needs nodes.
        """
        aside = self._aside(candidate)
        if aside is None or not self._stands(candidate, aside):
            return nodes
        return min(nodes, aside.nodes // 2)

    def _aside(self, candidate: ProviderOffer) -> FailureRecord | None:
        held = self._health.get(candidate.provider)
        name = candidate.offer.name
        return held.row(FailureKind.OFFER, name) if held is not None else None

    def _stands(self, candidate: ProviderOffer, aside: FailureRecord) -> bool:
        """Tell whether bursts as large as the one that failed have to wait."""
        return aside.until > self._now or candidate.key in self._running

    def _why_not_size(
        self, candidate: ProviderOffer, nodes: int, before: int
    ) -> OfferRejection | None:
        aside, key = self._aside(candidate), candidate.key
        least = max(1, aside.nodes) if aside else 0
        if aside is None or max(1, nodes) < least:
            return None
        if aside.until > self._now:
            facts = cooldown_facts(candidate.provider, aside)
            return OfferRejection(key, Reason.OFFER_COOLDOWN, facts)
        # The trial of this plan may grow, but no other burst may grow to that size.
        begun = key in self._begun and before < least
        if key in self._running or begun:
            return _on_trial(candidate, f"offer {key}")
        return None

    def _why_not_spec(
        self, candidate: ProviderOffer, key: str
    ) -> OfferRejection | None:
        held = self._health[candidate.provider]
        for each in (spec_key(candidate.offer.name), key):
            spec = held.row(FailureKind.SPEC, each)
            if spec and spec.until > self._now:
                provider = candidate.provider
                facts = {"why": spec.why, "provider": provider, "until": spec.until}
                return OfferRejection(candidate.key, Reason.SPEC_REFUSED, facts)
        return None


def _on_trial(candidate: ProviderOffer, what: str) -> OfferRejection:
    """Return that others wait while one burst shows whether something works again."""
    return OfferRejection(candidate.key, Reason.ON_TRIAL, {"what": what})


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
    ends = world.identity.ends
    return offer_catalog(
        provider_offers(offered, world.places, settings, now, ends),
        Failures(records.health, coming_bursts(records.live), now),
        [name for name, table in settings.providers.items() if not table.enabled],
    )


def offer_catalog(
    offers: Mapping[str, Sequence[ProviderOffer] | None],
    failures: Failures,
    disabled: Sequence[str] = (),
) -> OfferCatalog:
    """Sort the offers of each provider; None stands for offers that are not read yet.

    `disabled` are the providers that the settings have, and do not enable.

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
    for name in disabled:
        facts = {"provider": name}
        refusals.append(OfferRejection(f"{name}/*", Reason.NOT_ENABLED, facts))
    return OfferCatalog(
        offers=tuple(sorted(usable, key=_dearness)),
        refusals=tuple(refusals),
        known=tuple(known),
        disabled=frozenset(disabled),
        unread=frozenset(name for name, its in offers.items() if its is None),
        failures=failures,
    )


def _dearness(candidate: ProviderOffer) -> tuple[float, float, float]:
    offer = candidate.offer
    return offer.price, offer.fee, offer.join_time
