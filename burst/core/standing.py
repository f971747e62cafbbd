# SPDX-License-Identifier: MIT
"""Standing minimums: nodes that a site keeps at certain hours, also without jobs.

Missing nodes are requested as by `burst request` (`burst_requests`). A burst that
was made like this is not ended as idle while the minimum needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from burst.config import Settings, StandingNodes
from burst.config.intervals import parse_hours
from burst.config.policy import as_tuple
from burst.core.jobs.rules import minute_of_week
from burst.core.plan.limits import FurtherUse
from burst.core.records import ASSIGNABLE, RecordsView, Transaction, is_usable
from burst.model.burst import ISOLATED_STEM, Burst, BurstId, Lease
from burst.model.decision import count_nodes


class StandingMinimum(NamedTuple):
    """One table `[[providers.NAME.standing]]`, with the provider's name."""

    provider: str
    table: StandingNodes

    def has(self, lease: Lease) -> bool:
        """Tell whether a burst counts towards the minimum.

        It must be of the minimum's offer and open to all users: not isolated, without a
        tag, and not requested by a guest.
        """
        kept_for_some = lease.isolated or lease.tag or lease.requester is not None
        offers = ("", lease.offer)
        its = self.provider == lease.provider and self.table.offer in offers
        return its and not kept_for_some

    def may_have(self, burst: BurstId, use: FurtherUse) -> bool:
        """Tell whether a burst may count of which no more than its use is known."""
        provider, _, offer = use.offer.partition("/")
        of_offer = not (offer and self.table.offer) or offer == self.table.offer
        isolated = burst.startswith(f"{ISOLATED_STEM}-")
        return provider == self.provider and of_offer and not isolated

    def missing(self, records: RecordsView) -> int:
        """Return how many nodes are missing; 0 or less if none are.

        Quarantined bursts count, as they may still cost money.
        """
        live = (burst for burst in records.live if burst.state in ASSIGNABLE)
        there = (burst.lease.nodes for burst in live if self.has(burst.lease))
        return self.table.nodes - sum(there)

    def text(self) -> str:
        """Return the minimum in words, such as `2 nodes of gke/n2, Mo-Fr 8-18`."""
        offer = "/".join(filter(None, (self.provider, self.table.offer)))
        nodes = f"{count_nodes(self.table.nodes)} of {offer}"
        return ", ".join((nodes, *as_tuple(self.table.hours)))


def minimums_at(settings: Settings, now: float) -> Iterator[StandingMinimum]:
    """Yield the minimums that apply at that time."""
    minute = minute_of_week(now)
    for name, provider in settings.providers.items():
        for table in provider.standing if provider.enabled else ():
            hours = as_tuple(table.hours)
            if not hours or any(_minutes(each) >> minute & 1 for each in hours):
                yield StandingMinimum(name, table)


def stands(lease: Lease, settings: Settings, now: float) -> StandingMinimum | None:
    """Return the minimum that keeps a burst now; None if it was not made for one."""
    if not lease.standing:
        return None
    return next((each for each in minimums_at(settings, now) if each.has(lease)), None)


def nodes_needed_of(tx: Transaction, burst: Burst) -> int:
    """Return how many nodes minimums need of a burst that was made for one.

    It may be more than the burst has. Only other bursts that were made for minimums can
    replace it: bursts for jobs end with their jobs.
    """
    if not burst.lease.standing:
        return 0
    others = [
        other
        for other in tx.live
        if is_usable(other) and other.lease.standing and other.id != burst.id
    ]
    return max(
        (
            minimum.table.nodes
            - sum(
                each.lease.nodes - len(each.leaving)
                for each in others
                if minimum.has(each.lease)
            )
            for minimum in minimums_at(tx.settings, tx.now)
            if minimum.has(burst.lease)
        ),
        default=0,
    )


def is_needed(tx: Transaction, burst: Burst) -> bool:
    """Tell whether a minimum needs a burst that was made for one."""
    return nodes_needed_of(tx, burst) > 0


def describe_renewal(tx: Transaction, burst: BurstId) -> str:
    """Return a sentence if another burst will replace one that ends; else empty."""
    known = [tx.bursts[burst].lease] if burst in tx.bursts else []
    for minimum in minimums_at(tx.settings, tx.now):
        if any(map(minimum.has, known)) and minimum.missing(tx) > 0:
            return (
                f"another burst is made in its place for the standing minimum of"
                f" {minimum.text()}; to end that, remove it from"
                f" [providers.{minimum.provider}], and burst reload"
            )
    return ""


@functools.cache
def _minutes(hours: str) -> int:
    return parse_hours(hours)
