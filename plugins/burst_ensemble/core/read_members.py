# SPDX-License-Identifier: MIT
"""Reads the members of an ensemble from what is on record and what the lead shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from burst.config import IntakeSettings
from burst.core.cost import cost
from burst.core.records import ASSIGNABLE, RecordsView
from burst.model.active_job import JobOutcome
from burst.model.burst import Burst, State, Tag
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.shape import Shape
from burst_ensemble.core.held_back import held_back_jobs
from burst_ensemble.core.isolated_runs import isolated_runs
from burst_ensemble.core.job_rows import JobsSeen, count_jobs, row_of
from burst_ensemble.core.reading import MemberReading
from burst_ensemble.core.stored import MemberBook


class MemberState(msgspec.Struct, frozen=True):
    """A member as it was read."""

    reading: MemberReading
    book: MemberBook
    """What is known from now on."""


class JobsRead(msgspec.Struct, frozen=True):
    """What was read of jobs."""

    lead: LeadView
    jobs: Mapping[Tag, Sequence[JobView]]
    """As `jobs_by_member` returns them."""
    outcomes: Mapping[JobId, JobOutcome]
    """Of jobs that the lead does not show any more."""
    intake: IntakeSettings | None = None
    """By which it is seen which jobs are held back; None if that is not needed."""


def bursts_of(records: RecordsView, membership: Tag) -> list[Burst]:
    """Return the live bursts of a member, the oldest first."""
    its = [burst for burst in records.live if burst.lease.tag == membership]
    return sorted(its, key=lambda burst: (burst.lease.created, burst.id))


def usable_bursts(records: RecordsView, membership: Tag) -> list[Burst]:
    """Return those bursts of a member that come up or are up, the oldest first."""
    return [burst for burst in bursts_of(records, membership) if is_usable(burst)]


def is_usable(burst: Burst) -> bool:
    """Tell whether a burst comes up or is up."""
    return burst.state in ASSIGNABLE and not burst.quarantined


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
    membership: Tag,
    book: MemberBook,
    records: RecordsView,
    read: JobsRead,
    now: float,
) -> MemberState:
    """Return a member as it is now; `book` is what was known at the last time."""
    lead = read.lead
    live = bursts_of(records, membership)
    counted = count_jobs(book.jobs, _jobs_seen(membership, records, read), now)
    after = _settle(book, records, membership, now)
    reading = MemberReading(
        queue=counted.queue,
        waiting=counted.waiting,
        next_jobs=counted.next_jobs,
        events=counted.events,
        spent=after.settled + sum(cost(records, burst, now) for burst in live),
        price=live[-1].lease.price if live else 0.0,
    )
    return MemberState(
        _with_nodes(reading, live, lead),
        msgspec.structs.replace(after, jobs=counted.known),
    )


def jobs_by_member(lead: LeadView) -> dict[Tag, list[JobView]]:
    """Return the jobs that are for members of ensembles: one pass for all members."""
    found: dict[Tag, list[JobView]] = {}
    for job in lead.jobs.values():
        if (whose := job.tag) is not None:
            found.setdefault(whose, []).append(job)
    return found


def job_group(job: JobView) -> str:
    """Return the entry of `jobs` that a job is of; empty if it is of none."""
    return job.attributes.get("burst_group", "")


def _jobs_seen(membership: Tag, records: RecordsView, read: JobsRead) -> JobsSeen:
    """Return a member's jobs, those that run in isolated bursts as they run there."""
    its = (each for each in records.bursts.values() if each.lease.tag == membership)
    runs = isolated_runs(its)
    jobs = read.jobs.get(membership, ())
    rows = [row_of(job, job_group(job)) for job in jobs]
    seen = JobsSeen(
        [runs[row.id].row(row) if row.id in runs else row for row in rows],
        {
            job: runs[job].outcome(found) if job in runs else found
            for job, found in read.outcomes.items()
        },
    )
    if read.intake is None:
        return seen
    held_back = held_back_jobs(jobs, records, read.lead, read.intake)
    return msgspec.structs.replace(seen, held_back=held_back)


def _with_nodes(
    reading: MemberReading, live: Iterable[Burst], lead: LeadView
) -> MemberReading:
    paid = size = alone = cores = 0
    up: set[int] = set()
    whole: dict[int, Shape] = {}
    for burst in live:
        paid += burst.lease.nodes
        if burst.lease.isolated is not None:
            # It gives nothing back before its end, and others come in its place.
            size += burst.lease.nodes
            if burst.state is State.ONLINE:
                alone += burst.lease.nodes
                cores += burst.lease.nodes * burst.lease.shape.cores
        elif is_usable(burst):
            size += wanted_nodes(burst)
            up |= lead.usable.intersection(burst.lease.ranks)
            whole |= dict.fromkeys(burst.lease.ranks, burst.lease.shape)
    free = {rank: lead.free.get(rank, Shape(0)) for rank in up}
    return msgspec.structs.replace(
        reading,
        nodes=paid,
        size=size,
        nodes_up=len(up) + alone,
        nodes_free=len(up - lead.allocated),
        cores_up=sum(whole[rank].cores for rank in up) + cores,
        cores_free=sum(min(free[r].cores, whole[r].cores) for r in up),
    )


def _settle(
    book: MemberBook, records: RecordsView, membership: Tag, now: float
) -> MemberBook:
    """Return the book with the cost of bursts of which nothing is left.

    They are on record for a while only, so each is added once.
    """
    gone = [
        burst
        for burst in records.bursts.values()
        if burst.lease.tag == membership and not burst.live
    ]
    new = [burst for burst in gone if burst.id not in book.settled_bursts]
    return msgspec.structs.replace(
        book,
        settled=book.settled + sum(cost(records, burst, now) for burst in new),
        settled_bursts=tuple(sorted(burst.id for burst in gone)),
    )
