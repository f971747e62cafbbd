# SPDX-License-Identifier: MIT
"""All active jobs of a lead, burstable or not, as a forecast of start times needs them.

There may be 100,000 of them, so that each has few fields, and equal requests are one
object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

LONGEST_NAME = 64
"""The longest name of a job, in characters; a user may choose any name."""


class ActiveJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One job that has not ended. Times are in seconds since the epoch."""

    id: JobId
    userid: int
    name: str
    """`attributes.system.job.name`, cut to LONGEST_NAME; empty for none."""
    queue: str = ""
    state: JobState = JobState.DEPEND
    priority: int = 0
    """The scheduler sorts pending jobs by this, highest first; 0 means held."""
    request: ResourceRequest | None = None
    """None if the jobspec cannot be read."""
    duration: float = 0.0
    """The job's time limit in seconds, 0 for none."""
    t_start: float = 0.0
    """When it started; 0 while it has no allocation."""
    t_finish: float = 0.0
    """When its tasks ended, or the job if no task began; 0 before."""
    taken: Mapping[int, Shape] = {}
    """The cores and GPUs of each rank that are allocated to it."""


class QueuePicture(msgspec.Struct, frozen=True, kw_only=True):
    """All active jobs that have or wait for an allocation."""

    running: tuple[ActiveJob, ...] = ()
    """Jobs that have an allocation, in the order in which they started."""
    pending: tuple[ActiveJob, ...] = ()
    """Jobs in state SCHED in the scheduler's order, by priority and then by id. Held
    jobs (priority 0) come last."""


class JobOutcome(msgspec.Struct, frozen=True):
    """How a job ended."""

    result: str
    """completed, failed, canceled or timeout."""
    t_start: float
    """0 if it never ran."""
    t_finish: float


def picture_of(jobs: Iterable[ActiveJob]) -> QueuePicture:
    """Return the picture of these jobs."""
    running, pending = [], []
    for job in jobs:
        if job.taken:
            running.append(job)
        elif job.state is JobState.SCHED:
            pending.append(job)
    running.sort(key=lambda job: (job.t_start, job.id))
    # Two stable sorts: most jobs have one priority, and come in the order of ids.
    pending.sort(key=lambda job: job.id)
    pending.sort(key=lambda job: -job.priority)
    return QueuePicture(running=tuple(running), pending=tuple(pending))
