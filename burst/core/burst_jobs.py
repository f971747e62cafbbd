# SPDX-License-Identifier: MIT
"""What events of jobs change in a burst: the times of each job, and their sums.

Each function returns the fields of the burst that change. Events of jobs that are not
assigned to the burst change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from burst.model.burst import KEPT_JOBS, Burst, JobSums, JobTimes
from burst.model.event import Event
from burst.model.jobid import parse_jobid

IN_USE: Mapping[str, Any] = MappingProxyType(
    {"unused_since": None, "keep_idle": math.inf}
)
"""The changes after something has begun to run on the burst."""


def assign(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after jobs were assigned to the burst."""
    found = {
        parse_jobid(job): float(submitted)
        for job, submitted in event.context.get("jobs", {}).items()
    }
    if not found:
        return {}
    new = {job: JobTimes(submitted=at) for job, at in found.items()}
    times = {**new, **burst.times}
    first = min(found.values())
    return {
        "times": times,
        "jobs": frozenset(times),
        "sums": _earlier(burst.sums, "submitted", first),
    }


def job_hold(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job was held."""
    return _first_time(burst, event, "held")


def job_release(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a held job got its urgency back."""
    return _first_time(burst, event, "released")


def job_start(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job was seen running."""
    changes = _first_time(burst, event, "started")
    if changes:
        changes["started"] = burst.started | {parse_jobid(event.context["id"])}
    return {**changes, **IN_USE}


def job_leave(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job has left the burst and goes on without it."""
    job = parse_jobid(event.context["id"])
    return {
        "times": {other: of for other, of in burst.times.items() if other != job},
        "jobs": burst.jobs - {job},
        "started": burst.started - {job},
    }


def job_finish(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job has ended: it is counted, and kept for a while.

    The last KEPT_JOBS jobs that ended are kept one by one.
    """
    job = parse_jobid(event.context["id"])
    times = burst.times.get(job)
    if times is None:
        return {}
    sums, at = burst.sums, event.timestamp
    result = str(event.context.get("result", "unknown"))
    ended = msgspec.structs.replace(times, finished=at, result=result)
    results = {**sums.results, result: sums.results.get(result, 0) + 1}
    return {
        "times": {other: of for other, of in burst.times.items() if other != job},
        "jobs": burst.jobs - {job},
        "started": burst.started - {job},
        "sums": msgspec.structs.replace(
            sums,
            finished=max(at, sums.finished or at),
            results=results,
            recent=(*sums.recent, (job, ended))[-KEPT_JOBS:],
        ),
    }


def reaped(burst: Burst, _: Event) -> dict[str, Any]:
    """Return the changes after the burst is gone: only KEPT_JOBS of its jobs are kept.

    These jobs can still be told what became of it. Otherwise bursts that fail one after
    the other for the same jobs would each keep a record of every job.
    """
    order = {
        job: (of.started is not None, of.submitted) for job, of in burst.times.items()
    }
    jobs = frozenset(sorted(order, key=lambda job: order[job])[-KEPT_JOBS:])
    return {
        "times": {job: of for job, of in burst.times.items() if job in jobs},
        "jobs": jobs,
        "started": burst.started & jobs,
    }


def _first_time(burst: Burst, event: Event, what: str) -> dict[str, Any]:
    """Record when something first happened to a job; later events change nothing."""
    job, when = parse_jobid(event.context["id"]), event.timestamp
    times = burst.times.get(job)
    if times is None or getattr(times, what) is not None:
        return {}
    times = msgspec.structs.replace(times, **{what: when})
    return {
        "times": {**burst.times, job: times},
        "sums": _earlier(burst.sums, what, when),
    }


def _earlier(sums: JobSums, what: str, when: float) -> JobSums:
    """Return the sums with that time, if it is earlier than the time they have."""
    known = getattr(sums, what)
    if known is not None and known <= when:
        return sums
    return msgspec.structs.replace(sums, **{what: when})
