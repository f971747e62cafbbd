# SPDX-License-Identifier: MIT
"""Counts bursts that came online and could run no job.

Flux drained their nodes before a job had begun there, or they failed soon after they
were online, for example because the cloud took their nodes back at once. Another such
burst would cost money without use, so their offer is set aside after two in a row.
"""

from __future__ import annotations

from burst.config import LimitSettings
from burst.core import cooldowns
from burst.core.flux_drains import DrainFound
from burst.core.provider_health import FailureKind
from burst.core.records import Transaction
from burst.model.burst import Burst, Result, State
from burst.model.lead import LeadView


def count_flux_drain(
    tx: Transaction, burst: Burst, found: DrainFound, limits: LimitSettings
) -> None:
    """Count a burst whose nodes Flux drained before any job had begun there."""
    if found.before_start:
        _count(tx, burst, found.note, limits)


def count_failed_soon(tx: Transaction, burst: Burst, limits: LimitSettings) -> None:
    """Count a burst that has failed now, soon after it was online, and served no job.

    Soon is within `[limits] cooldown`. Its jobs have to be on record: one may have
    started since the tick before.
    """
    if burst.state is not State.REAP or burst.since != tx.now or burst.served:
        return
    if burst.result not in (Result.FAILED, Result.RECLAIMED):
        return
    online = [event.timestamp for event in burst.events if event.name == "online"]
    if online and tx.now - online[0] < limits.cooldown:
        note = burst.events[-1].context["note"]
        _count(tx, burst, note, limits)


def forget_unusable(tx: Transaction, burst: Burst, lead: LeadView) -> None:
    """Forget an offer's unusable bursts once a job has begun on a later burst."""
    provider, offer = burst.lease.provider, burst.lease.offer
    health = tx.health_of(provider)
    counted = health.row(FailureKind.UNUSABLE, offer)
    if counted is None or burst.lease.created < counted.at:
        return
    if any(job in lead.jobs and lead.jobs[job].t_start for job in burst.jobs):
        tx.set_health(provider, health.without(FailureKind.UNUSABLE, offer))


def _count(tx: Transaction, burst: Burst, why: str, limits: LimitSettings) -> None:
    known = tx.health_of(burst.lease.provider)
    row = known.row(FailureKind.UNUSABLE, burst.lease.offer)
    if row is not None and burst.lease.created < row.at:
        return  # one cause may end several bursts that were made before
    health = cooldowns.count_unusable(known, burst.lease.offer, why, limits, tx.now)
    tx.set_health(burst.lease.provider, health)
