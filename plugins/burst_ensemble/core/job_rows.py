# SPDX-License-Identifier: MIT
"""Jobs of a member as they were read, and what is counted of them.

The lead shows those of members that joined it, an agent reports those of a member that
is an instance of its own; both are counted in the member's book in one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

import msgspec

from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst_ensemble.algorithm import QueueCounts
from burst_ensemble.core.reading import JobEvent, MemberEvent, MemberReading
from burst_ensemble.core.record import KnownJob, MemberBook

GROUP = "burst_group"
"""Attribute of jobs: the entry of `jobs` that one is of."""
NEXT_MOST = 11
"""Jobs whose sizes are told one by one."""
_FORGOTTEN = 300.0
"""Seconds for which a job that has ended is known: longer than a lead shows it."""
_WAITING = (JobState.PRIORITY, JobState.SCHED)
_Time = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class JobRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One job. Times: seconds since the epoch, 0 for what has not come yet."""

    id: JobId
    state: JobState
    group: Annotated[str, msgspec.Meta(max_length=63)]
    """Entry of `jobs`; empty for a job that somebody else submitted."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    urgency: Annotated[int, msgspec.Meta(ge=0, le=31)]
    """That it has or will have."""
    t_submit: _Time
    t_start: _Time = 0.0
    t_finish: _Time = 0.0
    result: str = ""
    """Once it is inactive: completed, failed, canceled or timeout."""


class JobsSeen(msgspec.Struct, frozen=True):
    """All that was read of a member's jobs."""

    rows: Sequence[JobRow]
    outcomes: Mapping[JobId, JobOutcome]
    """Of jobs that are not in `rows` any more."""
    more: Mapping[JobState, int] = {}
    """How many further jobs there are."""
    held_back: Collection[JobId] = frozenset()
    """Jobs that would start on no nodes, so that they wait for none."""


class MemberState(msgspec.Struct, frozen=True):
    """A member as it was read."""

    reading: MemberReading
    book: MemberBook
    """What is known from now on."""


def row_of(job: JobView, tag: str) -> JobRow:
    """Return a job that a lead shows; one without that tag as of no group."""
    has_tag = job.preferences.tag == tag
    return JobRow(
        id=job.id,
        state=job.state,
        group=job.attributes.get(GROUP, "") if has_tag else "",
        nodes=job.nodes_asked,
        urgency=job.later_urgency,
        t_submit=job.t_submit,
        t_start=job.t_start,
        t_finish=job.t_finish,
        result=job.result,
    )


def count_jobs(before: MemberBook, seen: JobsSeen, now: float) -> MemberState:
    """Return what is known of jobs, and a reading of jobs alone, with the events that
    are not counted yet.

    They bear the time of this reading, as what is shown of a job may come later than it
    happened: so each is counted once, and none is taken for older than one that was
    counted before.
    """
    events: list[MemberEvent] = []
    jobs = dict(before.jobs)
    rows = {row.id: row for row in seen.rows}
    for job_id in sorted(rows):
        jobs[job_id] = _count(rows[job_id], jobs.get(job_id), events, now)
    for job_id in sorted(jobs.keys() & seen.outcomes.keys() - rows.keys()):
        outcome = seen.outcomes[job_id]
        jobs[job_id] = _count_outcome(jobs[job_id], outcome, events, now)
    waiting = [
        row
        for row in rows.values()
        if row.state in _WAITING and row.id not in seen.held_back
    ]
    waiting.sort(key=lambda row: (-row.urgency, row.id))
    sizes = [jobs[row.id].nodes for row in waiting]
    jobs = {
        job_id: job
        for job_id, job in jobs.items()
        if job.counted != "finish" or now - job.seen < _FORGOTTEN
    }
    reading = MemberReading(
        queue=_queue(jobs, rows.values(), seen.more),
        waiting=Counter(sizes),
        next_jobs=tuple(sizes[:NEXT_MOST]),
        events=tuple(events),
    )
    return MemberState(reading, msgspec.structs.replace(before, jobs=jobs))


def count_submitted(job: KnownJob, now: float) -> MemberEvent:
    """Return the event of a job that is known to be there before it was seen."""
    return _event("submit", job, now)


def _count(
    row: JobRow, known: KnownJob | None, events: list[MemberEvent], now: float
) -> KnownJob:
    """Return a job with what is counted of it now; append what is counted newly."""
    if known is None or not known.counted:
        known = KnownJob(row.group, row.nodes, submitted=row.t_submit)
        events.append(_event("submit", known, now))
    known = msgspec.structs.replace(known, seen=now)
    if row.state is JobState.INACTIVE:
        outcome = JobOutcome(row.result, row.t_start, row.t_finish)
        return _count_outcome(known, outcome, events, now)
    return _count_start(known, row.t_start, events, now)


def _count_start(
    known: KnownJob, started: float, events: list[MemberEvent], now: float
) -> KnownJob:
    if known.counted != "submit" or not started:
        return known
    known = msgspec.structs.replace(known, counted="start", started=started)
    took = max(0.0, started - known.submitted)
    events.append(_event("start", known, now, took=took))
    return known


def _count_outcome(
    known: KnownJob, outcome: JobOutcome, events: list[MemberEvent], now: float
) -> KnownJob:
    """Return a job that has ended; one that never ran has no finish.

    It may have failed all the same: in a prolog, or as no shell could be started.
    """
    if known.counted == "finish":
        return known
    if not known.counted:
        known = msgspec.structs.replace(known, counted="submit")
        events.append(_event("submit", known, now))
    known = _count_start(known, outcome.t_start, events, now)
    success, ran = outcome.result == "completed", known.counted == "start"
    if ran:
        took = max(0.0, outcome.t_finish - known.started)
        events.append(_event("finish", known, now, success=success, took=took))
    if not success:
        failed = not ran and outcome.result != "canceled"
        event = _event("exception", known, now)
        events.append(msgspec.structs.replace(event, failed=failed))
    return msgspec.structs.replace(known, counted="finish", seen=now)


def _event(
    name: JobEvent,
    job: KnownJob,
    now: float,
    *,
    success: bool = False,
    took: float = 0.0,
) -> MemberEvent:
    return MemberEvent(at=now, name=name, group=job.group, success=success, took=took)


def _queue(
    jobs: Mapping[JobId, KnownJob],
    rows: Collection[JobRow],
    more: Mapping[JobState, int],
) -> QueueCounts:
    """Return the jobs by state. Those that ended are those that are still known."""
    counts = Counter(row.state.value for row in rows)
    unseen = sum(not job.counted for job in jobs.values())
    counts["inactive"] += len(jobs) - len(rows) - unseen
    counts.update({state.value: number for state, number in more.items()})
    return QueueCounts(**counts)
