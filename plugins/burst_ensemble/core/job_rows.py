# SPDX-License-Identifier: MIT
"""Jobs of a member as they were read, and the statistics about them.

The lead shows the jobs of its own members, an agent reports those of an external
member; both are counted in the member's record in the same way. Mean and variance use
Welford's method (Technometrics 4, 1962); quartiles and the median distance from the
median are those of the latest 32 values, which are kept.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst_ensemble.algorithm import JobTally, MemberReading, QueueCounts, Spread
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.record import KNOWN_MOST, KnownJob, MemberRecord

GROUP = "burst_group"
"""Attribute of jobs: the entry of `jobs` in the file that the job belongs to."""
NEXT_MOST = 11
"""The maximum length of `next_jobs`, the sizes of the first waiting jobs."""
_FORGOTTEN = 300.0
"""Seconds for which an ended job stays in the record: longer than a lead shows it."""
_UNSEEN = 300.0
"""Seconds for which a submitted job counts as new until the lead shows it. A lead that
has lost its jobs never shows it."""
_WAITING = (JobState.PRIORITY, JobState.SCHED)
JobEvent = Literal["submit", "start", "finish", "exception"]
"""The events of a job that are counted, in the words of its eventlog (RFC 21).
`exception`: it ended, and its result is not `completed`; `finish` is counted only if
it ran."""
LATEST = 32
"""The number of values that a Spread keeps."""
_Time = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class JobRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One job. Times: seconds since the epoch, 0 for what has not happened yet."""

    id: JobId
    state: JobState
    group: Annotated[str, msgspec.Meta(max_length=80)]
    """Entry of `jobs`; empty for a job that somebody else submitted. In the report of
    an agent the run follows, as in the job's name."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    urgency: Annotated[int, msgspec.Meta(ge=0, le=31)]
    """The urgency that it has, or will have once it is released."""
    t_submit: _Time
    t_start: _Time = 0.0
    t_finish: _Time = 0.0
    result: str = ""
    """Once it is inactive: completed, failed, canceled or timeout; empty before."""


class JobsSeen(msgspec.Struct, frozen=True):
    """All that was read of a member's jobs."""

    rows: Sequence[JobRow]
    outcomes: Mapping[JobId, JobOutcome]
    """How jobs ended that are no longer in `rows`."""
    more: Mapping[JobState, int] = {}
    """How many further jobs there are, by state."""
    held_back: Collection[JobId] = frozenset()
    """Jobs that no number of nodes would start, so they do not wait for nodes."""
    has_others: bool = False
    """Whether jobs without a group belong to others, as in an external member. They are
    in the reading alone, so that they are no reason to end the member or to submit
    fewer jobs. Those with a group are of this run, whatever the instance's clock says.
    """


class SizedReading(MemberReading, frozen=True, kw_only=True):
    """The reading of a member. One that cannot be read has none and is left alone."""

    size: int = 0
    """Nodes that it will have when all that is being made or drained is done."""


class MemberState(msgspec.Struct, frozen=True):
    """A member as it was read."""

    reading: SizedReading
    member: MemberRecord
    """The member's record with what was read."""


def lost_jobs(member: MemberRecord, shown: Collection[JobId]) -> list[JobId]:
    """Return jobs that ended between two readings: the lead is asked for them."""
    return [
        job_id
        for job_id, job in sorted(member.jobs.items())
        if job.counted != "finish" and job_id not in shown
    ]


def count_jobs(before: MemberRecord, seen: JobsSeen, now: float) -> MemberState:
    """Return a member's record with each event of its jobs counted once, and a reading
    that has only its jobs.

    Jobs that were submitted before the member began are not its own: those that have
    ended do not count, and others have no group. Once the record has KNOWN_MOST jobs,
    further ones that others have submitted are in the reading alone, and their events
    are not counted. `JobsSeen.has_others` is another rule.
    """
    count = _Count(before, now)
    jobs = dict(before.jobs)
    rows = {row.id: row for row in seen.rows}
    for job_id in sorted(rows):
        row, known = rows[job_id], jobs.get(job_id)
        if known is None and seen.has_others and not row.group:
            continue
        is_earlier = row.t_submit < before.started and not seen.has_others
        if is_earlier and known is None:
            if row.state is JobState.INACTIVE:
                continue
            row = msgspec.structs.replace(row, group="")
        if known is not None or len(jobs) < KNOWN_MOST:
            jobs[job_id] = count.row(row, known)
    for job_id in sorted(jobs.keys() & seen.outcomes.keys() - rows.keys()):
        jobs[job_id] = count.outcome(jobs[job_id], seen.outcomes[job_id])
    waiting = [
        row
        for row in rows.values()
        if row.state in _WAITING and row.id not in seen.held_back
    ]
    waiting.sort(key=lambda row: (-row.urgency, row.id))
    sizes = [row.nodes for row in waiting]
    jobs = {
        job_id: job
        for job_id, job in jobs.items()
        if job.counted != "finish" or job_id in rows or now - job.ended < _FORGOTTEN
    }
    reading = SizedReading(
        queue=_queue(jobs, rows, seen.more, now),
        waiting=Counter(sizes),
        next_jobs=tuple(sizes[:NEXT_MOST]),
    )
    after = msgspec.structs.replace(
        before, jobs=jobs, statistics=count.statistics, total=count.total
    )
    return MemberState(reading, after)


def count_never_taken(
    before: MemberRecord, never_taken: Mapping[JobRef, str]
) -> MemberRecord:
    """Return the record in which these unconfirmed jobs have failed, with the reason of
    each: the lead will never accept them.
    """
    statistics, total, why = dict(before.statistics), before.total, before.never_taken
    for job in before.unconfirmed:
        if job in never_taken:
            tally = statistics.get(job.group, JobTally())
            statistics[job.group] = with_event(tally, "exception", failed=True)
            total = with_event(total, "exception", failed=True)
            why = never_taken[job]
    left = tuple(job for job in before.unconfirmed if job not in never_taken)
    return msgspec.structs.replace(
        before, unconfirmed=left, statistics=statistics, total=total, never_taken=why
    )


class _Count:
    """The statistics of a member while events of its jobs are added."""

    def __init__(self, before: MemberRecord, now: float) -> None:
        self.statistics, self.total = dict(before.statistics), before.total
        self._now = now

    def row(self, row: JobRow, known: KnownJob | None) -> KnownJob:
        """Count the new events of a job in `rows`; return what is known of it now."""
        if known is None or not known.counted:
            group = row.group if known is None else known.group
            known = KnownJob(group, row.nodes, submitted=row.t_submit)
            self._add(known, "submit")
        if row.state is JobState.INACTIVE:
            outcome = JobOutcome(row.result, row.t_start, row.t_finish)
            return self.outcome(known, outcome)
        return self._start(known, row.t_start)

    def outcome(self, known: KnownJob, outcome: JobOutcome) -> KnownJob:
        """Count the end of a job; return what is known of it now.

        A job that never ran has no finish event. It may have failed nevertheless: in a
        prolog, or because no shell could be started.
        """
        if known.counted == "finish":
            return known
        if not known.counted:
            known = msgspec.structs.replace(known, counted="submit")
            self._add(known, "submit")
        known = self._start(known, outcome.t_start)
        success, ran = outcome.result == "completed", known.counted == "start"
        if ran:
            took = max(0.0, outcome.t_finish - known.started)
            self._add(known, "finish", took, success=success)
        if not success:
            failed = not ran and outcome.result != "canceled"
            self._add(known, "exception", failed=failed)
        return msgspec.structs.replace(known, counted="finish", ended=self._now)

    def _start(self, known: KnownJob, started: float) -> KnownJob:
        if known.counted != "submit" or not started:
            return known
        self._add(known, "start", max(0.0, started - known.submitted))
        return msgspec.structs.replace(known, counted="start", started=started)

    def _add(
        self, job: KnownJob, event: JobEvent, took: float = 0.0, **how: bool
    ) -> None:
        before = self.statistics.get(job.group, JobTally())
        self.statistics[job.group] = with_event(before, event, took, **how)
        self.total = with_event(self.total, event, took, **how)


def _queue(
    jobs: Mapping[JobId, KnownJob],
    rows: Mapping[JobId, JobRow],
    more: Mapping[JobState, int],
    now: float,
) -> QueueCounts:
    """Return the number of jobs in each state. Inactive jobs count while the record has
    them. Jobs that were submitted after the lead was read count as new.
    """
    counts = Counter(row.state.value for row in rows.values())
    rest = [job for job_id, job in jobs.items() if job_id not in rows]
    counts["new"] += sum(
        not job.counted and now - job.submitted < _UNSEEN for job in rest
    )
    counts["inactive"] += sum(bool(job.counted) for job in rest)
    counts.update({state.value: number for state, number in more.items()})
    return QueueCounts(**counts)


def with_value(spread: Spread, value: float) -> Spread:
    """Return the spread with one value more."""
    count = spread.count + 1
    mean = spread.mean + (value - spread.mean) / count
    # The sum of the squared distances from the mean.
    squares = spread.variance * max(0, spread.count - 1)
    squares += (value - spread.mean) * (value - mean)
    latest = (*spread.latest[-LATEST + 1 :], round(value, 3))
    return Spread(
        count=count,
        mean=mean,
        variance=squares / (count - 1) if count > 1 else 0.0,
        min=min(spread.min, value) if spread.count else value,
        max=max(spread.max, value) if spread.count else value,
        iqr=_iqr(latest),
        mad=_mad(latest),
        latest=latest,
    )


def with_event(
    tally: JobTally,
    event: JobEvent,
    took: float = 0.0,
    *,
    success: bool = False,
    failed: bool = False,
) -> JobTally:
    """Return the tally with one event more.

    `took`: for `start`, the seconds since submit; for `finish`, those since start.
    `success`: for `finish`, whether the job's result is `completed`. `failed`: for
    `exception`, whether the job failed before it started, and so has no finish.
    """
    changes: dict[str, object] = {
        "events": {**tally.events, event: tally.events.get(event, 0) + 1}
    }
    if event == "start":
        changes["pending"] = with_value(tally.pending, took)
    elif event == "finish":
        changes["duration"] = with_value(tally.duration, took)
    if event == "finish" or failed:
        ended = "success" if success else "failed"
        changes |= {ended: getattr(tally, ended) + 1, "finished": tally.finished + 1}
    return msgspec.structs.replace(tally, **changes)


def _iqr(values: tuple[float, ...]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _mad(values: tuple[float, ...]) -> float:
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)
