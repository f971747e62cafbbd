# SPDX-License-Identifier: MIT
"""Who has the ranks of each slot, until when, and who gets them next.

As far as time limits, leases and promises tell: what is told of later is planned anew
in each tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Literal

import msgspec

from burst.core.plan.demands import Promise
from burst.core.plan.leasable import LeasableRanks, burst_end, leasable_ranks
from burst.core.plan.slots import RankSlot
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.burst import Burst, BurstId
from burst.model.jobid import JobId
from burst.model.lead import LeadView

Holder = Literal["burst", "planned", "promised", "free", "ending", "closed"]


class RankSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of one slot, and who has them for a while."""

    slot: str
    ranks: tuple[int, ...]
    holder: Holder
    """A live burst; one that would be made now, or would grow by them; a job; nobody;
    a burst that shrinks by them, or what is left of one that ended, as its drain; or
    nobody can have them before a person has done something, also where a quarantined
    burst has them."""
    begins: float
    """Seconds since the epoch; now for what is there."""
    ends: float = math.inf
    """math.inf where no time limit tells; `begins` where nothing runs on a burst. Until
    then ranks are kept of which no time limit tells when the job can have them."""
    known: bool = True
    """Of promised ranks: whether time limits say when the job can have them."""
    burst: BurstId | None = None
    jobs: tuple[JobId, ...] = ()


def outlook(
    records: RecordsView,
    world: World,
    promises: Sequence[Promise],
    planned: Set[int],
    now: float,
) -> list[RankSpan]:
    """Return the spans of all slots, in the order of slots and ranks.

    `planned` are the ranks that live bursts would be given now. The lead can be read.
    """
    lead = world.lead
    assert lead is not None
    ranks = leasable_ranks(world.slots, records, lead)
    found: list[RankSpan] = []
    for slot in world.slots:
        spans = [
            *_of_bursts(slot, records.live, planned, lead, now),
            *_of_promises(slot, promises, lead, now),
            *_of_no_burst(slot, records.live, ranks, now),
        ]
        found += sorted(spans, key=lambda span: (span.begins, span.ranks))
    return found


def _of_bursts(
    slot: RankSlot,
    bursts: Iterable[Burst],
    planned: Set[int],
    lead: LeadView,
    now: float,
) -> Iterator[RankSpan]:
    for burst in bursts:
        here = set(slot.ranks).intersection(burst.lease.ranks)
        leaving = here.intersection(burst.leaving)
        parts: dict[Holder, Set[int]] = {
            "burst": here - planned - leaving,
            "planned": here & planned,
            "ending": leaving,
        }
        if burst.quarantined:
            parts = {"closed": here}
        for holder, ranks in parts.items():
            whole = holder in ("burst", "planned")
            ends = max(now, burst_end(burst, lead)) if whole else math.inf
            if ranks:
                yield RankSpan(
                    slot=slot.name,
                    ranks=tuple(sorted(ranks)),
                    holder=holder,
                    begins=now,
                    ends=ends,
                    burst=burst.id,
                    jobs=() if holder == "ending" else tuple(sorted(burst.jobs)),
                )


def _of_promises(
    slot: RankSlot, promises: Iterable[Promise], lead: LeadView, now: float
) -> Iterator[RankSpan]:
    for promise in promises:
        here = tuple(rank for rank in promise.ranks if rank in slot.ranks)
        if here:
            begins = max(now, promise.start)
            duration = lead.jobs[promise.job].duration
            ends = begins + duration if duration else math.inf
            yield RankSpan(
                slot=slot.name,
                ranks=here,
                holder="promised",
                begins=begins if promise.known else now,
                ends=ends if promise.known else begins,
                jobs=(promise.job,),
                known=promise.known,
            )


def _of_no_burst(
    slot: RankSlot, bursts: Iterable[Burst], ranks: LeasableRanks, now: float
) -> Iterator[RankSpan]:
    leased = {rank for burst in bursts for rank in burst.lease.ranks}
    found: dict[Holder, list[int]] = {"free": [], "ending": [], "closed": []}
    for rank in slot.ranks:
        if rank not in leased:
            ending: Holder = "ending" if rank in ranks.ends else "closed"
            found["free" if rank in ranks.free else ending].append(rank)
    for holder, here in found.items():
        if here:
            yield RankSpan(slot=slot.name, ranks=tuple(here), holder=holder, begins=now)
