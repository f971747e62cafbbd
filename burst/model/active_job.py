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
"""Of a job's name, in characters; its user may give it any."""


class ActiveJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One job that has not ended. Times: seconds since the epoch."""

    id: JobId
    userid: int
    name: str
    """`attributes.system.job.name`, cut to LONGEST_NAME; empty for none."""
    queue: str = ""
    state: JobState = JobState.DEPEND
    priority: int = 0
    """What the scheduler sorts pending jobs by, highest first; 0: held."""
    request: ResourceRequest | None = None
    """None where the jobspec cannot be read."""
    duration: float = 0.0
    """The job's time limit in seconds, 0 for none."""
    t_start: float = 0.0
    """0 as long as it has no allocation."""
    t_finish: float = 0.0
    """When its tasks ended, or when it did if they never began; 0 before."""
    taken: Mapping[int, Shape] = {}
    """What of which ranks is allocated to it."""


class QueuePicture(msgspec.Struct, frozen=True, kw_only=True):
    """All active jobs that have or wait for an allocation."""

    running: tuple[ActiveJob, ...] = ()
    """Jobs that have an allocation, the first that started first."""
    pending: tuple[ActiveJob, ...] = ()
    """Jobs in state SCHED in the scheduler's order, by priority and then by id. Those
    that are held (priority 0) are the last of them."""


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
