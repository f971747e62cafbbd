# SPDX-License-Identifier: MIT
"""Rank slots that bursts have and will give back, and when that may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from burst.core.placement.limits import BurstUsage, usage_of
from burst.core.placement.plan import BurstCapacity
from burst.core.placement.slots import RankSlot, ends_with_lease, slot_holders
from burst.core.records import RecordsView
from burst.model.burst import Burst, BurstId
from burst.model.jobid import JobId
from burst.model.lead import LeadView


class LeasedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a slot that a live burst of ours has."""

    until: float
    """When the jobs on it have ended, by their time limits; seconds since the epoch,
    math.inf where one has none. 0 where none runs."""
    jobs: frozenset[JobId] = frozenset()
    shares: Mapping[BurstId, BurstUsage] = {}
    """The bursts that have ranks of it, and what limits count of each until it is gone.
    A burst may have ranks of several slots, as slots may be declared anew."""
    spare: int = 0
    """How many further ranks of the slot other bursts can have, now or soon."""
    leaving: bool = False
    """Whether ranks of it are still drained for a burst that is gone or going."""


class LiveBursts(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity that live bursts have now, and the rank slots that they lease."""

    now: float = 0.0
    """When they were read; seconds since the epoch."""
    capacities: Sequence[BurstCapacity] = ()
    slots: Mapping[str, LeasedSlot] = {}
    """By name."""
    whole_nodes: bool = False
    """Whether the scheduler gives each job whole nodes, of bursts to come, too."""
    overtaken: Mapping[JobId, int] | None = None
    """How many nodes were given to others that came after a job, while it waited for
    them; None where none may be given."""


def find_leased_slots(
    slots: Sequence[RankSlot], records: RecordsView, lead: LeadView
) -> dict[str, LeasedSlot]:
    """Return the slots that bursts of ours have and will give back, by name.

    Not those that only a person can free: of a quarantined burst, of a record that
    cannot be read, or with ranks that are barred, unfreed, or that a person drained.
    """
    own = {r for r, why in lead.drained.items() if ends_with_lease(why)}
    never = lead.barred | lead.unfreed | (lead.drained.keys() - own)
    bursts: dict[int, Burst] = {}
    for burst in records.live:
        for rank in burst.lease.ranks:
            bursts[rank] = burst
    unread = slot_holders(slots, (), records.unread_leases)
    found: dict[str, LeasedSlot] = {}
    for slot in slots:
        on = {bursts[rank].id: bursts[rank] for rank in slot.ranks if rank in bursts}
        stuck = slot.name in unread or any(b.quarantined for b in on.values())
        # Once a burst is gone, its ranks are still drained for a moment.
        busy = bool(on) or not own.isdisjoint(slot.ranks)
        if busy and not stuck and never.isdisjoint(slot.ranks):
            leased = _leased(slot, on.values(), lead)
            if on and slot.divisible:
                left = sum(rank not in bursts for rank in slot.ranks)
                leaving = not own.isdisjoint(slot.ranks)
                leased = msgspec.structs.replace(leased, spare=left, leaving=leaving)
            found[slot.name] = leased
    return found


def _leased(slot: RankSlot, bursts: Iterable[Burst], lead: LeadView) -> LeasedSlot:
    jobs = frozenset(job for burst in bursts for job in burst.jobs)
    until = max((_end(lead, job) for job in jobs), default=0.0)
    if not jobs and not lead.allocated.isdisjoint(slot.ranks):
        until = math.inf  # Flux started a job there that no burst was made for
    shares = {burst.id: usage_of(burst, lead.jobs) for burst in bursts}
    return LeasedSlot(until=until, jobs=jobs, shares=shares)


def _end(lead: LeadView, job: JobId) -> float:
    """Return when a job has ended at the latest."""
    view = lead.jobs.get(job)
    if view is None or not view.duration or not view.t_start:
        return math.inf
    return view.t_start + view.duration
