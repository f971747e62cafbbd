# SPDX-License-Identifier: MIT
"""Jobs and ranks as clients are shown them. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from burst.errors import MALFORMED, JobspecError
from burst.model.active_job import LONGEST_NAME, ActiveJob
from burst.model.exit_status import shell_status
from burst.model.lead import JobState, JobView, LeadView
from burst.model.request import (
    BurstPreferences,
    is_burstable,
    parse_attributes,
    parse_bank,
    parse_name,
    parse_preferences,
)
from burst.model.shape import Shape
from burst_embedded.calls import ActiveWork, JobInfo, WatchInstance
from burst_embedded.job import EmbeddedJob
from burst_embedded.pool import ResourcePool
from burst_embedded.wire import OUTPUT_LIMIT

RECENT_S = 60.0
"""Jobs that ended are shown to the engine for this long."""


def lead_view(
    pool: ResourcePool, jobs: Iterable[EmbeddedJob], wanted: WatchInstance, now: float
) -> LeadView:
    """Return the ranks, and those of the jobs that are wanted and matter still."""
    return LeadView(
        read_at=now,
        jobs={
            job.id: job_view(job, wanted)
            for job in jobs
            if (wanted.whole or _is_wanted(job, wanted))
            and not (
                job.t_inactive
                and job.t_inactive < now - RECENT_S
                and job.id not in wanted.known
            )
        },
        online=frozenset(pool.online),
        drained=dict(pool.drained),
        allocated=pool.allocated(),
        free=pool.free_shapes(),
    )


def _is_wanted(job: EmbeddedJob, wanted: WatchInstance) -> bool:
    burstable = is_burstable(job.jobspec, wanted.attribute)
    return burstable or job.id in wanted.known


def active_work(job: EmbeddedJob) -> ActiveWork:
    """Return a job as a forecast needs it."""
    active = ActiveJob(
        id=job.id,
        userid=job.userid,
        name=_name(job.jobspec)[:LONGEST_NAME],
        state=job.state,
        priority=job.priority,
        request=job.request,
        duration=job.duration,
        t_start=job.t_start,
        t_finish=job.t_finish or job.t_inactive,
        taken={
            rank: Shape(len(share.cores), len(share.gpus))
            for rank, share in job.allocation.items()
        },
    )
    over = job.state is JobState.INACTIVE
    return ActiveWork(active, over, job.jobspec, tuple(job.events))


def _name(jobspec: Mapping[str, Any]) -> str:
    """Return the job's name, empty where it has none or it cannot be read."""
    try:
        return str(jobspec["attributes"]["system"]["job"]["name"])
    except MALFORMED:
        return ""


def job_view(job: EmbeddedJob, wanted: WatchInstance) -> JobView:
    """Return a job as the engine is shown it."""
    preferences, bank, unreadable = BurstPreferences(), "", ""
    try:
        preferences = parse_preferences(job.jobspec)
        bank = parse_bank(job.jobspec)
    except JobspecError as error:
        unreadable = str(error)
    return JobView(
        id=job.id,
        userid=job.userid,
        state=job.state,
        urgency=job.urgency,
        priority=job.priority,
        request=None if unreadable else job.request,
        unreadable=unreadable,
        preferences=preferences,
        duration=job.duration,
        bank=bank,
        name=parse_name(job.jobspec),
        attributes=parse_attributes(job.jobspec),
        ranks=frozenset(job.allocation),
        ran_on=job.ran_on,
        t_submit=job.t_submit,
        t_start=job.t_start,
        t_finish=job.t_finish,
        result=job.result,
        held_at_submit=job.urgency == 0 and _urgency_is_as_submitted(job),
        burstable=is_burstable(job.jobspec, wanted.attribute),
        confined_to=job.confined_to,
    )


def _urgency_is_as_submitted(job: EmbeddedJob) -> bool:
    return all(event.name != "urgency" for event in job.events)


def job_info(job: EmbeddedJob) -> JobInfo:
    """Return a job as people are shown it."""
    never_ran = job.state is JobState.INACTIVE and not job.t_start
    return JobInfo(
        id=job.id,
        userid=job.userid,
        state=job.state,
        urgency=job.urgency,
        nnodes=len(job.hosts) or job.request.nodes,
        ntasks=job.request.slots,
        hosts=job.hosts,
        result=job.result,
        exit_code=1 if never_ran else _exit_code(job.status),
        t_submit=job.t_submit,
        t_start=job.t_start,
        t_finish=job.t_finish,
        command=job.command.argv,
        memo=job.memo,
        events=tuple(job.events),
        output_cut=job.output_size >= OUTPUT_LIMIT,
    )


def _exit_code(status: int) -> int:
    """Return what a shell would return for a wait status."""
    return shell_status(os.waitstatus_to_exitcode(status))
