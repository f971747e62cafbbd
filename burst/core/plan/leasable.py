# SPDX-License-Identifier: MIT
"""Finds the ranks of rank slots that bursts may lease, now or once others end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.core.plan.slots import RankSlot, ends_with_lease, readable_slots
from burst.core.provider_calls import is_overdue
from burst.core.records import RecordsView, unread_leases
from burst.model.burst import Burst, BurstId, State
from burst.model.jobid import JobId
from burst.model.lead import LeadView

UNSCHEDULED = "not in Flux's scheduler"
"""The reason given for a rank that is not drained, but not the scheduler's."""
_MINUTE_S = 60.0
_ENDING = (State.DRAIN, State.REAP)


class LeasableRanks(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks that a new burst may have, now or later, as far as is known."""

    free: frozenset[int] = frozenset()
    """The ranks that it may have now."""
    ends: Mapping[int, float] = {}
    """When each of the other ranks becomes free: once the jobs on it have ended."""
    holders: Mapping[int, BurstId] = {}
    """The live burst that has each leased rank, without quarantined bursts."""
    staying: Mapping[BurstId, float] = {}
    """The bursts that stay without jobs, and when they end, as `burst_end` returns it.
    Until then only jobs that can join such a burst get its ranks."""
    drained: Mapping[int, str] = {}
    """Ranks that would be free if no person had drained them, and the reason given; or
    if the scheduler had them, and UNSCHEDULED."""


def leasable_ranks(
    slots: Sequence[RankSlot], records: RecordsView, lead: LeadView
) -> LeasableRanks:
    """Return which ranks of these slots bursts may lease.

    Ranks that only a person can free are left out: those of a quarantined burst or of a
    record that cannot be read, and those that are barred, unfreed, or drained by a
    person.
    """
    live = records.live
    slots = readable_slots(slots, unread_leases(records))
    free = free_ranks(slots, live, lead)
    # Once a burst is gone, its ranks are still drained or promised for a moment.
    own = {rank for rank, why in lead.drained.items() if ends_with_lease(why)}
    never = lead.barred | lead.unfreed | (lead.drained.keys() - own)
    soon = own | lead.promised
    ends: dict[int, float] = {
        rank: 0.0 for slot in slots for rank in slot.ranks if rank in soon
    }
    holders: dict[int, BurstId] = {}
    for burst in live:
        end = _jobs_end(burst, lead)
        for rank in burst.lease.ranks:
            ends.pop(rank, None)
            if not burst.quarantined:
                ends[rank], holders[rank] = end, burst.id
    drained = {r: why for r, why in lead.drained.items() if r not in own}
    drained |= dict.fromkeys(lead.unscheduled, UNSCHEDULED)
    if drained:
        others = {r: why for r, why in lead.drained.items() if r in own}
        opened = msgspec.structs.replace(lead, drained=others, unscheduled=frozenset())
        open_ = free_ranks(slots, live, opened)
        drained = {r: why for r, why in drained.items() if r in open_}
    return LeasableRanks(
        free=free,
        drained=drained,
        ends={r: at for r, at in ends.items() if r not in never and r not in free},
        holders=holders,
        staying={burst.id: burst_end(burst, lead) for burst in live if _stays(burst)},
    )


def free_ranks(
    slots: Sequence[RankSlot], live: Sequence[Burst], view: LeadView
) -> frozenset[int]:
    """Return the ranks of slots that a new burst may lease now.

    No live burst has them, they are neither drained nor excluded, and no pending job is
    confined to them. If a rank that no burst has is up, unfreed or allocated, no rank
    of its slot is free: it is not known who uses that rank, and which others will be
    used. A slot whose hosts join through a gateway is free as a whole or not at all.
    """
    leased = {rank for burst in live for rank in burst.lease.ranks}
    hosts = {host for burst in live for host in burst.lease.hosts}
    unclear = view.online | view.torpid | view.unfreed | view.allocated
    not_now = view.closed | view.promised
    found: set[int] = set()
    for slot in slots:
        left = {
            rank
            for rank, host in zip(slot.ranks, slot.hosts, strict=True)
            if rank not in leased and host not in hosts
        }
        if not unclear.isdisjoint(left):
            continue
        free = left - not_now
        if slot.divisible or len(free) == slot.size:
            found |= free
    return frozenset(found)


def burst_end(burst: Burst, lead: LeadView) -> float:
    """Return the latest time at which the jobs of a live burst will have ended.

    It follows from their time limits and the end of the lease, in seconds since the
    epoch; 0 if no job has the burst, math.inf if nothing tells the end. For a burst
    with a tag or of a standing minimum only the lease counts, as it stays without jobs.
    """
    return burst.lease.end or math.inf if _stays(burst) else _jobs_end(burst, lead)


def _stays(burst: Burst) -> bool:
    """Tell whether a live burst stays without jobs."""
    kept = bool(burst.lease.tag or burst.lease.standing)
    return kept and burst.state not in _ENDING


def _jobs_end(burst: Burst, lead: LeadView) -> float:
    """Return `burst_end` as for a burst that does not stay."""
    end = max((_job_end(job, lead) for job in burst.jobs), default=0.0)
    ends = burst.state in _ENDING and end <= lead.read_at
    if ends and is_overdue(burst):
        return math.inf  # what it waits for may never happen
    # Flux started a job there that no burst was made for.
    if not burst.jobs and not lead.allocated.isdisjoint(burst.lease.ranks):
        end = math.inf
    return min(end, burst.lease.end or math.inf)


def _job_end(job: JobId, lead: LeadView) -> float:
    view = lead.jobs.get(job)
    if view is None or not view.duration:
        return math.inf
    if view.t_start:
        return view.t_start + view.duration
    # It is about to start. Rounded up to the minute, so that refusals that rest on this
    # time stand meanwhile.
    return math.ceil((lead.read_at + view.duration) / _MINUTE_S) * _MINUTE_S
