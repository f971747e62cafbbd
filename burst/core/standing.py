# SPDX-License-Identifier: MIT
"""Standing minimums: nodes that a site keeps, by hours, although no job needs them.

What is missing is requested as by `burst request` (`standing_requests`); a burst that
was made so is not ended as idle while the minimum needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from burst.config import Settings, StandingNodes
from burst.config.intervals import parse_hours
from burst.config.policy import as_tuple
from burst.core.records import ASSIGNABLE, RecordsView
from burst.core.worth.rules import minute_of_week
from burst.model.burst import Burst, BurstId, Lease
from burst.model.decision import count_nodes


class StandingMinimum(NamedTuple):
    """One table `[[providers.NAME.standing]]`, and whose it is."""

    provider: str
    table: StandingNodes

    def has(self, lease: Lease) -> bool:
        """Tell whether a burst is of its offer, and for jobs of more than one user.

        Those with a tag, of a guest's request, and isolated ones are not.
        """
        kept_for_some = lease.isolated or lease.tag or lease.requester is not None
        offers = ("", lease.offer)
        its = self.provider == lease.provider and self.table.offer in offers
        return its and not kept_for_some

    def missing(self, records: RecordsView) -> int:
        """Return how many nodes there are too few; 0 or less for none.

        One that is quarantined counts, as it may still be paid for.
        """
        live = (burst for burst in records.live if burst.state in ASSIGNABLE)
        there = (burst.lease.nodes for burst in live if self.has(burst.lease))
        return self.table.nodes - sum(there)

    def text(self) -> str:
        """Return it in words, such as `2 nodes of gke/n2, Mo-Fr 8-18`."""
        offer = "/".join(filter(None, (self.provider, self.table.offer)))
        nodes = f"{count_nodes(self.table.nodes)} of {offer}"
        return ", ".join((nodes, *as_tuple(self.table.hours)))


def minimums_at(settings: Settings, now: float) -> Iterator[StandingMinimum]:
    """Yield the minimums that hold at that time."""
    minute = minute_of_week(now)
    for name, provider in settings.providers.items():
        for table in provider.standing if provider.enabled else ():
            hours = as_tuple(table.hours)
            if not hours or any(_minutes(each) >> minute & 1 for each in hours):
                yield StandingMinimum(name, table)


def stands(lease: Lease, settings: Settings, now: float) -> StandingMinimum | None:
    """Return the minimum for which a burst is kept now that was made for one."""
    if not lease.standing:
        return None
    return next((each for each in minimums_at(settings, now) if each.has(lease)), None)


def is_needed(
    records: RecordsView, burst: Burst, settings: Settings, now: float, left: int = 0
) -> bool:
    """Tell whether a burst that was made for a minimum has to keep more than `left`.

    Only others that were made for one take its place: those for jobs end with these.
    """
    if not burst.lease.standing:
        return False
    others = [
        other.lease
        for other in records.live
        if other.state in ASSIGNABLE and not other.quarantined
        if other.lease.standing and other.id != burst.id
    ]
    return any(
        left + sum(lease.nodes for lease in others if minimum.has(lease))
        < minimum.table.nodes
        for minimum in minimums_at(settings, now)
        if minimum.has(burst.lease)
    )


def describe_renewal(
    records: RecordsView, burst: BurstId, settings: Settings, now: float
) -> str:
    """Return that another burst takes the place of one that ends; empty if none."""
    known = [records.bursts[burst].lease] if burst in records.bursts else []
    for minimum in minimums_at(settings, now):
        if any(map(minimum.has, known)) and minimum.missing(records) > 0:
            return (
                f"another burst is made in its place for the standing minimum of"
                f" {minimum.text()}; to end that, remove it from"
                f" [providers.{minimum.provider}], and burst reload"
            )
    return ""


@functools.cache
def _minutes(hours: str) -> int:
    return parse_hours(hours)
