# SPDX-License-Identifier: MIT
"""Reads the members of an ensemble from what is on record and what the lead shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from burst.algorithm import QueueCounts
from burst.core.cost import cost
from burst.core.ensemble.reading import MemberEvent, MemberReading
from burst.core.ensemble.stored import KnownJob, MemberBook
from burst.core.records import ASSIGNABLE, RecordsView
from burst.model.active_job import JobOutcome
from burst.model.burst import Burst, Membership
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.shape import Shape

NEXT_MOST = 11
"""Jobs whose sizes are told one by one."""
_FORGOTTEN = 300.0
"""Seconds for which a job that has ended is known: longer than a lead shows it."""
_WAITING = (JobState.PRIORITY, JobState.SCHED)


class MemberState(msgspec.Struct, frozen=True):
    """A member as it was read."""

    reading: MemberReading
    book: MemberBook
    """What is known from now on."""


class JobsRead(msgspec.Struct, frozen=True):
    """What was read of jobs."""

    lead: LeadView
    outcomes: Mapping[JobId, JobOutcome]
    """Of jobs that the lead does not show any more."""


def bursts_of(records: RecordsView, membership: Membership) -> list[Burst]:
    """Return the live bursts of a member, the oldest first."""
    its = [burst for burst in records.live if burst.lease.member == membership]
    return sorted(its, key=lambda burst: (burst.lease.created, burst.id))


def usable_bursts(records: RecordsView, membership: Membership) -> list[Burst]:
    """Return those bursts of a member that come up or are up, the oldest first."""
    return [
        burst
        for burst in bursts_of(records, membership)
        if burst.state in ASSIGNABLE and not burst.quarantined
    ]


def wanted_nodes(burst: Burst) -> int:
    """Return how many nodes a burst has, once it has grown or shrunk."""
    return burst.resize.nodes if burst.resize else burst.lease.nodes


def lost_jobs(book: MemberBook, lead: LeadView) -> list[JobId]:
    """Return the jobs that have ended while nobody looked: the lead has to be asked."""
    return [
        job_id
        for job_id, job in book.jobs.items()
        if job.counted != "finish" and job_id not in lead.jobs
    ]


def read_member(
    membership: Membership,
    book: MemberBook,
    records: RecordsView,
    read: JobsRead,
    now: float,
) -> MemberState:
    """Return a member as it is now; `book` is what was known at the last time.

    Events are those that are not counted yet. They bear the time of this reading, as
    what the lead shows of a job may come later than it happened: so each is counted
    once, and none is taken for older than one that was counted before.
    """
    lead = read.lead
    views = {
        job.id: job
        for job in lead.jobs.values()
        if job.preferences.member == membership.name and job.userid == membership.userid
    }
    events: list[MemberEvent] = []
    jobs = dict(book.jobs)
    for job_id in sorted(views):
        jobs[job_id] = _count(views[job_id], jobs.get(job_id), events, now)
    for job_id in jobs.keys() & read.outcomes.keys() - views.keys():
        jobs[job_id] = _count_outcome(jobs[job_id], read.outcomes[job_id], events, now)
    waiting = [job for job in views.values() if job.state in _WAITING]
    waiting.sort(key=lambda job: (-max(job.urgency, job.preferences.urgency), job.id))
    sizes = [jobs[job.id].nodes for job in waiting]
    live = bursts_of(records, membership)
    after = _settle(book, records, membership, now)
    jobs = {
        job_id: job
        for job_id, job in jobs.items()
        if job.counted != "finish" or now - job.seen < _FORGOTTEN
    }
    reading = MemberReading(
        queue=_queue(jobs, views.values()),
        waiting=Counter(sizes),
        next_jobs=tuple(sizes[:NEXT_MOST]),
        events=tuple(events),
        spent=after.settled + sum(cost(burst, now) for burst in live),
        price=live[-1].lease.price if live else 0.0,
    )
    return MemberState(
        _with_nodes(reading, live, lead), msgspec.structs.replace(after, jobs=jobs)
    )


def job_group(job: JobView) -> str:
    """Return the entry of `jobs` that a job is of; empty if it is of none."""
    return job.attributes.get("burst_group", "")


def _with_nodes(
    reading: MemberReading, live: Iterable[Burst], lead: LeadView
) -> MemberReading:
    paid = size = 0
    up: set[int] = set()
    whole: dict[int, Shape] = {}
    for burst in live:
        paid += burst.lease.nodes
        if burst.state in ASSIGNABLE and not burst.quarantined:
            size += wanted_nodes(burst)
            up |= lead.usable.intersection(burst.lease.ranks)
            whole |= dict.fromkeys(burst.lease.ranks, burst.lease.shape)
    free = {rank: lead.free.get(rank, Shape(0)) for rank in up}
    return msgspec.structs.replace(
        reading,
        nodes=paid,
        size=size,
        nodes_up=len(up),
        nodes_free=len(up - lead.allocated),
        cores_up=sum(whole[rank].cores for rank in up),
        cores_free=sum(min(free[r].cores, whole[r].cores) for r in up),
    )


def _count(
    job: JobView, known: KnownJob | None, events: list[MemberEvent], now: float
) -> KnownJob:
    """Return a job with what is counted of it now; append what is counted newly."""
    if known is None:
        known = KnownJob(job_group(job), _nodes_of(job), submitted=job.t_submit)
        events.append(_event("submit", known, now))
    known = msgspec.structs.replace(known, seen=now)
    if job.state is JobState.INACTIVE:
        outcome = JobOutcome(job.result, job.t_start, job.t_finish)
        return _count_outcome(known, outcome, events, now)
    return _count_start(known, job.t_start, events, now)


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
    """Return a job that has ended; one that never ran has no finish."""
    if known.counted == "finish":
        return known
    known = _count_start(known, outcome.t_start, events, now)
    success = outcome.result == "completed"
    if known.counted == "start":
        took = max(0.0, outcome.t_finish - known.started)
        events.append(_event("finish", known, now, success=success, took=took))
    if not success:
        events.append(_event("exception", known, now))
    return msgspec.structs.replace(known, counted="finish", seen=now)


def _event(
    name: str, job: KnownJob, now: float, *, success: bool = False, took: float = 0.0
) -> MemberEvent:
    return MemberEvent(at=now, name=name, group=job.group, success=success, took=took)


def _nodes_of(job: JobView) -> int:
    """Return how many nodes a job asks for; 1 for one that asks for slots alone."""
    return job.request.nodes if job.request and job.request.nodes else 1


def _queue(jobs: Mapping[JobId, KnownJob], views: Iterable[JobView]) -> QueueCounts:
    """Return the jobs by state. Those that ended are those that are still known."""
    counts = Counter(job.state.value for job in views)
    shown = sum(counts.values())
    return QueueCounts(**{**counts, "inactive": counts["inactive"] + len(jobs) - shown})


def _settle(
    book: MemberBook, records: RecordsView, membership: Membership, now: float
) -> MemberBook:
    """Return the book with the cost of bursts of which nothing is left.

    They are on record for a while only, so each is added once.
    """
    gone = [
        burst
        for burst in records.bursts.values()
        if burst.lease.member == membership and not burst.live
    ]
    new = [burst for burst in gone if burst.id not in book.settled_bursts]
    return msgspec.structs.replace(
        book,
        settled=book.settled + sum(cost(burst, now) for burst in new),
        settled_bursts=tuple(sorted(burst.id for burst in gone)),
    )
