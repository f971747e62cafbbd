# SPDX-License-Identifier: MIT
"""Who has the ranks of each slot, until when, and who gets them next.

It shows what time limits, leases and promises tell now; each tick plans anew.
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
    """burst: a live burst. planned: a burst that would be made now, or would grow by
    them. promised: a job. free: nobody. ending: a burst that shrinks by them, or what
    is left of a burst that ended, such as its drain. closed: nobody can have them until
    a person does something; also ranks of a quarantined burst."""
    begins: float
    """Seconds since the epoch; now for what is there."""
    ends: float = math.inf
    """math.inf if no time limit tells; `begins` if nothing runs on a burst. For
    promised ranks that are not `known`, until when they are kept."""
    known: bool = True
    """For promised ranks: whether time limits tell when the job can have them."""
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

    `planned` are the ranks that bursts would be given now. The lead can be read.
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
