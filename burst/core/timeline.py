# SPDX-License-Identifier: MIT
"""The times of each stage of a burst, from the submission of its first job on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burst.core.lifecycle import EDGES
from burst.model.burst import Burst, JobTimes, State
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58

# The stages of a burst in order, and the event with which each begins. If there are
# several such events, the first counts.
STAGES = {
    "submit": "submit",
    "hold": "job-hold",
    "provision": "provision-start",
    "joined": "joined",
    "online": "online",
    "released": "job-release",
    "started": "job-start",
    "finished": "job-finish",
    "drained": "drained",
    "reaped": "reaped",
}
# Events of a job, and the field of JobTimes and of JobSums with its time. Of all jobs
# of a burst the first counts, for `finished` the last.
_OF_JOBS = {
    "job-hold": "held",
    "job-release": "released",
    "job-start": "started",
    "job-finish": "finished",
}


def timeline(burst: Burst) -> dict[str, float]:
    """Return when each stage began, in seconds since `begin_time`.

    Stages that have not happened are missing.
    """
    start = begin_time(burst)
    stages: dict[str, float] = {}
    for stage, name in STAGES.items():
        when = _first(burst, name)
        if when is not None:
            stages[stage] = round(max(0.0, when - start), 3)
    stages["submit"] = 0.0
    return stages


def state_times(burst: Burst) -> list[dict[str, Any]]:
    """Return each state that a burst was in, in order, and when it entered the state.

    The keys are `state` and `at`, which is in seconds since the epoch.
    """
    state, found = State.NEW, [(State.NEW, burst.lease.created)]
    for event in burst.events:
        after = EDGES.get((state, event.name), state)
        if after is not state:
            found.append((after, event.timestamp))
        state = after
    return [{"state": state.value, "at": at} for state, at in found]


def begin_time(burst: Burst) -> float:
    """Return when the first of its jobs was submitted, or the burst was requested."""
    submitted, created = burst.sums.submitted, burst.lease.created
    return created if submitted is None else min(submitted, created)


def known_events(burst: Burst, job: JobId | None = None) -> list[Event]:
    """Return the known events of a burst and of its jobs, in order of time.

    If `job` is given, events of other jobs are left out. Of jobs that ended, only the
    last KEPT_JOBS are still known one by one.
    """
    jobs = {**dict(burst.sums.recent), **burst.times}
    chosen = jobs if job is None else {job: jobs[job]} if job in jobs else {}
    told = [*burst.events, *(e for item in chosen.items() for e in _of_job(*item))]
    return sorted(told, key=lambda event: event.timestamp)


def assigned_jobs(burst: Burst) -> frozenset[JobId]:
    """Return the jobs known to be, or to have been, assigned to the burst."""
    ended = (job for job, _ in burst.sums.recent)
    return frozenset((*burst.jobs, *burst.times, *ended))


def _first(burst: Burst, name: str) -> float | None:
    if name in _OF_JOBS:
        when: float | None = getattr(burst.sums, _OF_JOBS[name])
        return when
    return burst.first(name)


def _of_job(job: JobId, times: JobTimes) -> Iterator[Event]:
    for name, field in _OF_JOBS.items():
        when = getattr(times, field)
        if when is not None:
            context = {"id": format_f58(job)}
            if name == "job-finish":
                context["result"] = times.result
            yield Event(when, name, context)
