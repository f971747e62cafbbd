# SPDX-License-Identifier: MIT
"""Which ranks of rank slots bursts may lease: now, or once others have ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from burst.core.plan.slots import RankSlot, ends_with_lease, slot_holders
from burst.core.records import RecordsView
from burst.model.burst import Burst, BurstId, State
from burst.model.jobid import JobId
from burst.model.lead import LeadView

_MINUTE_S = 60.0
_ENDING = (State.DRAIN, State.REAP)


class LeasableRanks(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks that a new burst may have, now or later. Others are not known to be."""

    free: frozenset[int] = frozenset()
    """Those that it may have now."""
    ends: Mapping[int, float] = {}
    """Others that come free: when, as of `burst_end`."""
    holders: Mapping[int, BurstId] = {}
    """The live bursts that have some of these."""
    drained: Mapping[int, str] = {}
    """Those that would be free had no person drained them, and the reason given."""


def leasable_ranks(
    slots: Sequence[RankSlot], records: RecordsView, lead: LeadView
) -> LeasableRanks:
    """Return which ranks of these slots bursts may lease.

    Not those that only a person can free: of a quarantined burst, of a record that
    cannot be read, barred, or drained by a person.
    """
    live = records.live
    free = free_ranks(slots, live, lead, records.unread_leases)
    stuck = slot_holders(slots, (), records.unread_leases)
    # Once a burst is gone, its ranks are still drained or promised for a moment.
    own = {rank for rank, why in lead.drained.items() if ends_with_lease(why)}
    never = lead.barred | lead.unfreed | (lead.drained.keys() - own)
    soon = own | lead.promised
    ends: dict[int, float] = {
        rank: 0.0
        for slot in slots
        if slot.name not in stuck
        for rank in slot.ranks
        if rank in soon
    }
    holders: dict[int, BurstId] = {}
    for burst in live:
        end = burst_end(burst, lead)
        for rank in burst.lease.ranks:
            ends.pop(rank, None)
            if not burst.quarantined:
                ends[rank], holders[rank] = end, burst.id
    drained = {r: why for r, why in lead.drained.items() if r not in own}
    if drained:
        others = {r: why for r, why in lead.drained.items() if r in own}
        undrained = msgspec.structs.replace(lead, drained=others)
        open_ = free_ranks(slots, live, undrained, records.unread_leases)
        drained = {r: why for r, why in drained.items() if r in open_}
    return LeasableRanks(
        free=free,
        drained=drained,
        ends={r: at for r, at in ends.items() if r not in never and r not in free},
        holders=holders,
    )


def free_ranks(
    slots: Sequence[RankSlot],
    bursts: Iterable[Burst],
    view: LeadView,
    unread: Iterable[str] = (),
) -> frozenset[int]:
    """Return the ranks of slots that a new burst may lease now.

    Those that no live burst has, that are neither drained nor excluded, and that no
    pending job is confined to. Nothing of a slot is free of which a rank that no burst
    has is up, unfreed or allocated: whose that is, and what more of it comes, is not
    known; nor of one that a burst may have of which the record cannot be read. A slot
    whose hosts join through a gateway is free as a whole or not at all.
    """
    live = [burst for burst in bursts if burst.live]
    leased = {rank for burst in live for rank in burst.lease.ranks}
    hosts = {host for burst in live for host in burst.lease.hosts}
    stuck = slot_holders(slots, (), unread)
    unclear = view.online | view.torpid | view.unfreed | view.allocated
    not_now = view.closed | view.promised
    found: set[int] = set()
    for slot in slots:
        left = frozenset(
            rank
            for rank, host in zip(slot.ranks, slot.hosts, strict=True)
            if rank not in leased and host not in hosts
        )
        if slot.name in stuck or not unclear.isdisjoint(left):
            continue
        free = left - not_now
        if slot.divisible or len(free) == slot.size:
            found |= free
    return frozenset(found)


def burst_end(burst: Burst, lead: LeadView) -> float:
    """Return when the jobs of a live burst have ended at the latest.

    By their time limits and the end of its lease, in seconds since the epoch; 0 where
    none runs, math.inf where nothing tells: as of one with a tag, which stays until
    somebody takes it down.
    """
    end = max((_job_end(job, lead) for job in burst.jobs), default=0.0)
    # Flux started a job there that no burst was made for.
    used = not burst.jobs and not lead.allocated.isdisjoint(burst.lease.ranks)
    stays = burst.lease.tag is not None and burst.state not in _ENDING
    if used or stays:
        end = math.inf
    return min(end, burst.lease.end or math.inf)


def _job_end(job: JobId, lead: LeadView) -> float:
    view = lead.jobs.get(job)
    if view is None or not view.duration:
        return math.inf
    if view.t_start:
        return view.t_start + view.duration
    # It is about to start. To the minute, so that what rests on it stands meanwhile.
    return math.ceil((lead.read_at + view.duration) / _MINUTE_S) * _MINUTE_S
