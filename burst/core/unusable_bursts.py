# SPDX-License-Identifier: MIT
"""Bursts whose nodes can run no job, and the drains that they leave.

Flux itself drains lent nodes, for example after a prolog failed on them. They get no
job and still cost money, so their burst is taken down. The drain is undone after the
lease: Flux keeps it for the rank, not for the node that was there. A drain by a person
stays.

Flux may do so before a job had begun there, or a burst may fail soon after it was
online, for example because the cloud took its nodes back at once. Another such burst
would cost money without use, so their offer is set aside after two in a row.
"""

from __future__ import annotations

import msgspec

from burst.core import cooldowns
from burst.core.actions import UndrainRanks
from burst.core.observation import ranks_of
from burst.core.plan.slots import readable_slots
from burst.core.provider_health import FailureKind
from burst.core.records import Transaction, unread_leases
from burst.core.world import World
from burst.model.burst import Burst, Result, State
from burst.model.confinement import LENT
from burst.model.decision import name_ranks
from burst.model.flux_drain import flux_drain
from burst.model.ranks import format_idset


class DrainFound(msgspec.Struct, frozen=True):
    """Why Flux drained ranks of a burst."""

    note: str
    before_start: bool
    """See `burst.model.flux_drain`."""


def find_flux_drain(burst: Burst, world: World) -> DrainFound | None:
    """Return why Flux drained ranks of a burst; None if it drained none.

    If there are several reasons, one from before the start of jobs is preferred: it
    tells most about the nodes.
    """
    lead = world.read_lead()
    found = {
        rank: (drain, lead.drained[rank])
        for rank in ranks_of(burst, world) & lead.drained.keys()
        if (drain := flux_drain(lead.drained[rank])) is not None
    }
    if not found:
        return None
    first = min(found, key=lambda rank: (not found[rank][0].before_start, rank))
    drain, reason = found[first]
    alike = format_idset(r for r, (_, why) in found.items() if why == reason)
    note = f"Flux drained {name_ranks(alike)}: {reason}; see {drain.output}"
    return DrainFound(note, drain.before_start)


def undrain_free_ranks(tx: Transaction) -> None:
    """Undrain lent ranks that Flux drained and that no burst leases any more.

    Nothing runs on an offline rank for which Flux could drain it, so such a drain is
    left from a lease that has ended. Ranks of slots that are not declared any more are
    undrained, too, unless a record cannot be read: it may be of a burst on such ranks.
    """
    lead = tx.lead
    away = lead.drained.keys() - lead.online
    ours = {rank for rank in away if flux_drain(lead.drained[rank]) is not None}
    if not ours:
        return
    known = readable_slots(tx.world.slots, unread_leases(tx))
    lent = {rank for slot in known for rank in slot.ranks}
    if not unread_leases(tx):
        lent |= tx.world.identity.properties.get(LENT, frozenset())
    leased = {rank for burst in tx.live for rank in burst.lease.ranks}
    if free := ours & lent - leased:
        tx.actions.append(UndrainRanks(frozenset(free)))


def count_flux_drain(tx: Transaction, burst: Burst, found: DrainFound) -> None:
    """Count a burst whose nodes Flux drained before any job had begun there."""
    if found.before_start:
        _count(tx, burst, found.note)


def count_failed_soon(tx: Transaction, burst: Burst) -> None:
    """Count a burst that has failed now, soon after it was online, and served no job.

    Soon is within `[limits] cooldown`. Its jobs have to be on record: one may have
    started since the tick before.
    """
    if burst.state is not State.REAP or burst.since != tx.now or burst.served:
        return
    if burst.result not in (Result.FAILED, Result.RECLAIMED):
        return
    online = burst.first("online")
    if online is not None and tx.now - online < tx.settings.limits.cooldown:
        note = burst.events[-1].context["note"]
        _count(tx, burst, note)


def forget_unusable(tx: Transaction, burst: Burst) -> None:
    """Forget an offer's unusable bursts once a job has begun on a later burst."""
    provider, offer = burst.lease.provider, burst.lease.offer
    health = tx.health_of(provider)
    counted = health.row(FailureKind.UNUSABLE, offer)
    if counted is None or burst.lease.created < counted.at:
        return
    jobs = tx.lead.jobs
    if any(job in jobs and jobs[job].t_start for job in burst.jobs):
        tx.set_health(provider, health.without(FailureKind.UNUSABLE, offer))


def _count(tx: Transaction, burst: Burst, why: str) -> None:
    known = tx.health_of(burst.lease.provider)
    row = known.row(FailureKind.UNUSABLE, burst.lease.offer)
    if row is not None and burst.lease.created < row.at:
        return  # one cause may end several bursts that were made before
    health = cooldowns.count_unusable(
        known, burst.lease.offer, why, tx.settings.limits, tx.now
    )
    tx.set_health(burst.lease.provider, health)
