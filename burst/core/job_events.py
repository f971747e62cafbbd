# SPDX-License-Identifier: MIT
"""Records to which burst each started job is assigned, and what became of the job.

A job that has started is assigned to the burst whose nodes it has. Flux may start a job
on another burst than the one that was made for it, or on a burst without assigned jobs.
So all that is reported and booked about jobs (`burst report`, `burst explain`, `burst
cost`) follows the ranks in R.
"""

from __future__ import annotations

from burst.core.records import Transaction
from burst.model.burst import Burst, BurstId
from burst.model.decision import name_ranks
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView
from burst.model.ranks import format_idset


def assign_started_jobs(tx: Transaction) -> None:
    """Assign each job to the bursts of which it has ranks, and to no others.

    A job that started and ended between two observations is only assigned if it is on
    record.
    """
    bursts = [b for b in tx.live if not (b.quarantined or b.lease.isolated)]
    assigned = {job for burst in bursts for job in burst.jobs}
    burst_at = {rank: burst.id for burst in bursts for rank in burst.lease.ranks}
    started: dict[BurstId, dict[str, float]] = {}
    for job in tx.lead.jobs.values():
        ranks = job.has_or_had if job.id in assigned else job.ranks
        if not ranks:
            continue  # most of ten thousand jobs wait
        for name in sorted({burst_at[rank] for rank in ranks if rank in burst_at}):
            if job.id not in tx.bursts[name].jobs:
                started.setdefault(name, {})[format_f58(job.id)] = job.t_submit
    for name, jobs in started.items():
        tx.record(name, "assign", {"jobs": jobs})
    for burst in bursts:
        _record_leaving(tx, tx.bursts[burst.id])


def record_job_events(tx: Transaction, burst: Burst) -> None:
    """Record which jobs of a burst have started and which have ended."""
    for job in sorted(burst.jobs):
        view = tx.lead.jobs.get(job)
        if view and view.t_start and burst.times[job].started is None:
            context = {"id": format_f58(job)}
            tx.record(burst.id, "job-start", context, view.t_start)
        _record_end(tx, burst, job, view)


def record_late_ends(tx: Transaction, burst: Burst) -> None:
    """Record which jobs that ran on a burst have ended after it.

    Its other jobs stay, to be told what became of it: they never run there.
    """
    for job in sorted(burst.started):
        _record_end(tx, burst, job, tx.lead.jobs.get(job))


def _record_end(
    tx: Transaction, burst: Burst, job: JobId, view: JobView | None
) -> None:
    context = {"id": format_f58(job)}
    if view is None:
        tx.record(burst.id, "job-finish", {**context, "result": "unknown"})
    elif view.state is JobState.INACTIVE:
        ended = {**context, "result": view.result}
        tx.record(burst.id, "job-finish", ended, view.t_finish)


def _record_leaving(tx: Transaction, burst: Burst) -> None:
    for job in sorted(burst.jobs & tx.lead.jobs.keys()):
        ranks = tx.lead.jobs[job].has_or_had
        if ranks and ranks.isdisjoint(burst.lease.ranks):
            note = f"it runs on other nodes, {name_ranks(format_idset(ranks))}"
            tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})
