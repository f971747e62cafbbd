# SPDX-License-Identifier: MIT
"""Records what became of the jobs that are assigned to a burst."""

from __future__ import annotations

from burst.core.records import Transaction
from burst.model.burst import Burst
from burst.model.jobid import format_f58
from burst.model.lead import JobState, LeadView


def record_job_events(tx: Transaction, burst: Burst, lead: LeadView) -> None:
    """Record which jobs of a burst were started and which ended."""
    for job in sorted(burst.jobs):
        view = lead.jobs.get(job)
        context = {"id": format_f58(job)}
        if view and view.t_start and job not in burst.started:
            tx.record(burst.id, "job-start", context, view.t_start)
        if view is None:
            tx.record(burst.id, "job-finish", {**context, "result": "unknown"})
        elif view.state is JobState.INACTIVE:
            ended = {**context, "result": view.result}
            tx.record(burst.id, "job-finish", ended, view.t_finish)
