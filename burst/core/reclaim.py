# SPDX-License-Identifier: MIT
"""Nodes that are taken for others: by the cloud, as it may those of spot offers, or by
pods of a higher priority.

That is on record when it is first reported, since what reports it is soon gone, such as
a preempted pod. The burst then has as long as any that lost ranks: where its provider
starts the followers elsewhere it goes on, else it ends as reclaimed.
"""

from __future__ import annotations

from burst.core.actions import TellJobs
from burst.core.losses import ran_until
from burst.core.observation import ProviderPhase, provider_phase, status_of
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, JobView
from burst.model.ranks import format_idset, parse_idset
from burst.provider import BurstStatus, Failure

_MAY_BE = (State.PROVISION, State.JOIN, State.ONLINE)


def record_reclaim(tx: Transaction, burst: Burst, world: World) -> Burst:
    """Record that the cloud takes nodes of a burst back, and tell the jobs on them.

    Return the burst as it is then.
    """
    if burst.reclaimed or burst.state not in _MAY_BE:
        return burst
    status = status_of(burst, world)
    if status is None or provider_phase(burst, world) is ProviderPhase.UNREAD:
        return burst
    note = _report(status)
    if not note:
        return burst
    ranks = _ranks(burst, status)
    context = {"note": note, "ranks": format_idset(ranks)}
    after = tx.record(burst.id, "reclaimed", context)
    jobs = world.lead.jobs if world.lead else {}
    running = [
        job
        for job in sorted(burst.jobs & jobs.keys())
        if jobs[job].state in ALLOCATED and _was_there(jobs[job], ranks)
    ]
    if running:
        why = f"burst {burst.id}: {note}"
        tx.actions.append(TellJobs(tuple(running), {"state": "reclaimed", "why": why}))
    return after


def is_restored(burst: Burst, world: World) -> bool:
    """Tell whether nodes of a burst were taken back and all its followers run again."""
    status = status_of(burst, world)
    running = provider_phase(burst, world) is ProviderPhase.RUNNING
    return bool(burst.reclaimed and running and status and not _report(status))


def reclaim_of(burst: Burst, job: JobId, view: JobView | None = None) -> str:
    """Return what took a job's nodes; empty if the cloud did not, or it completed.

    `view` is what the lead shows of it.
    """
    times = dict(burst.sums.recent).get(job) or burst.times.get(job)
    found = [event for event in burst.events if event.name == "reclaimed"]
    if times is None or not found:
        return ""
    at, note = found[-1].timestamp, found[-1].context["note"]
    ranks = parse_idset(found[-1].context.get("ranks", ""))
    if view is not None and not _was_there(view, ranks):
        return ""
    return f"burst {burst.id}: {note}" if ran_until(times, at) else ""


def _ranks(burst: Burst, status: BurstStatus) -> frozenset[int]:
    """Return the ranks whose places were taken: all, if no follower is named."""
    taken = {follower.host for follower in status.followers if follower.reclaimed}
    # An isolated burst has none.
    hosts = zip(burst.lease.ranks, burst.lease.hosts, strict=False)
    return frozenset(rank for rank, host in hosts if host in taken or not taken)


def _was_there(job: JobView, ranks: frozenset[int]) -> bool:
    """Tell whether a job had one of these ranks, or where it was is not known."""
    had = job.ranks or job.ran_on
    return not had or not ranks or not had.isdisjoint(ranks)


def _report(status: BurstStatus) -> str:
    """Return what the provider says of nodes that were taken back; empty for none."""
    taken = [follower for follower in status.followers if follower.reclaimed]
    if not taken and status.failure is not Failure.RECLAIMED:
        return ""
    hosts = ", ".join(follower.host for follower in taken) or "its nodes"
    why = next((f.why for f in taken if f.why), "") or status.why
    return f"others took the place of {hosts}" + (f" ({why})" if why else "")
