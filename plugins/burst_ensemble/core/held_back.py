# SPDX-License-Identifier: MIT
"""Jobs of members that start on no nodes: nothing grows for them, nothing stays."""

from __future__ import annotations

from collections.abc import Iterable

from burst.config import IntakeSettings
from burst.core.records import RecordsView
from burst.core.select.queues import decide_on_queue
from burst.model.hold import HELD_BY_US
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobView, LeadView


def held_back_jobs(
    jobs: Iterable[JobView],
    records: RecordsView,
    lead: LeadView,
    intake: IntakeSettings,
) -> frozenset[JobId]:
    """Return the pending jobs whose queue is stopped, or that their user holds.

    A user's hold shows once ours was taken back: before, both are urgency 0.
    """
    holds = records.holds
    return frozenset(
        job.id
        for job in jobs
        if job.state in PENDING
        and (
            decide_on_queue(job, lead, intake) is not None
            or (
                job.urgency == 0
                and job.id in holds
                and holds[job.id].state not in HELD_BY_US
            )
        )
    )
