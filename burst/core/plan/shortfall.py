# SPDX-License-Identifier: MIT
"""Jobs that have a part of the nodes they need, of which the rest cannot be had.

Such a job cannot start, so it stays held and its nodes are paid for nothing. Past
`[deadlines] complete` they are given back, and the job is left without any for as
long, twice as long each time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from burst.config import Settings
from burst.core.plan.capacity import is_up
from burst.core.plan.job_backoff import JobBackoff
from burst.core.records import Transaction
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason


def update_shortfalls(
    tx: Transaction,
    before: Mapping[JobId, JobBackoff],
    decisions: Mapping[JobId, Decision],
    settings: Settings,
    still_refused: Container[JobId] = (),
) -> Mapping[JobId, JobBackoff]:
    """Return what is known now of jobs that lack nodes; give back what took too long.

    `decisions` are those of this tick, whose new bursts are in the transaction by now;
    `still_refused` are jobs whose refusal stands, which were not looked at again.
    """
    bursts_of = tx.bursts_by_job()
    limit = settings.deadlines.complete
    found: dict[JobId, JobBackoff] = {}
    for job, known in before.items():
        bursts = bursts_of.get(job, ())
        if job not in decisions and job not in still_refused:
            continue
        # The rest may be on its way again, and fail again: that is no new beginning.
        lacks_nodes = bursts and not all(
            is_up(burst) and not burst.coming for burst in bursts
        )
        found[job] = known if lacks_nodes else known.without_wait()
    for job in bursts_of.keys() & decisions.keys():
        reason = decisions[job].reason
        if not reason.about_job.refused and reason is not Reason.RESERVED:
            continue
        known = before.get(job, JobBackoff())
        found[job] = known.after_wait(tx.now, limit)
        if found[job].expired > known.expired:
            _give_back(tx, job, bursts_of[job], limit)
    return {job: known for job, known in found.items() if known != JobBackoff()}


def _give_back(
    tx: Transaction, job: JobId, bursts: Sequence[Burst], limit: float
) -> None:
    """Have a job count on its bursts no more; those that nobody needs then end."""
    note = f"the rest of its nodes could not be had within {format_fsd(limit)}"
    for burst in bursts:
        tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})
