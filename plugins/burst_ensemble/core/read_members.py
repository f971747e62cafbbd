# SPDX-License-Identifier: MIT
"""Reads the members of an ensemble from what is on record and what the lead shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from burst.config import IntakeSettings
from burst.core.cost import cost
from burst.core.plan.offers import price_of
from burst.core.records import ASSIGNABLE, RecordsView
from burst.core.select.queues import decide_on_queue
from burst.model.active_job import JobOutcome
from burst.model.burst import Burst, State, Tag
from burst.model.hold import HELD_BY_US
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobState, JobView, LeadView
from burst.model.shape import Shape
from burst.provider import Offer
from burst_ensemble.config.spec import MemberSpec
from burst_ensemble.core.job_rows import (
    JobRow,
    JobsSeen,
    MemberState,
    count_jobs,
    row_of,
)
from burst_ensemble.core.reading import MemberReading
from burst_ensemble.core.record import MemberBook


class IsolatedRun(msgspec.Struct, frozen=True):
    """One run of a job that has begun elsewhere. Times: seconds since the epoch."""

    began: float
    ended: float
    """0 as long as it has not."""

    def row(self, row: JobRow) -> JobRow:
        """Return the job as it is where it runs."""
        state = row.state
        if state in PENDING:
            state = JobState.CLEANUP if self.ended else JobState.RUN
        finish = self.ended or row.t_finish
        return msgspec.structs.replace(
            row, state=state, t_start=self.began, t_finish=finish
        )

    def outcome(self, found: JobOutcome) -> JobOutcome:
        """Return how the job ended, with when it ran there."""
        return JobOutcome(found.result, self.began, self.ended or found.t_finish)


def isolated_runs(bursts: Iterable[Burst]) -> Mapping[JobId, IsolatedRun]:
    """Return the run of each job that has begun in one of these bursts.

    A job that its user took back from its burst, for Flux to start it, has none.
    """
    found = {}
    for burst in bursts:
        job = burst.lease.isolated_job
        run = _run_in(burst)
        if job is not None and run is not None:
            found[job] = run
    return found


def _run_in(burst: Burst) -> IsolatedRun | None:
    times = {event.name: event.timestamp for event in burst.events}
    began = times.get("online")
    if burst.exit_status is not None:
        # A short program may have ended before its instance was seen online.
        return IsolatedRun(began or times["finish"], times["finish"])
    if began is None:
        return None
    if burst.state is State.ONLINE:
        return IsolatedRun(began, 0.0)
    return IsolatedRun(began, times["exception"]) if burst.may_have_run else None


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
    after = _settle(book, records, membership, now)
    counted = count_jobs(after, _jobs_seen(membership, records, read), now)
    reading = msgspec.structs.replace(
        counted.reading,
        spent=after.settled + sum(cost(records, burst, now) for burst in live),
        price=live[-1].lease.price if live else 0.0,
    )
    return MemberState(_with_nodes(reading, live, lead), counted.book)


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


def with_offered_price(
    found: MemberState,
    member: MemberSpec,
    offers: Sequence[Offer],
    prices: Mapping[str, float],
) -> MemberState:
    """Return a member without nodes with the price of the offer that it would take.

    Else it would seem to cost nothing, and jobs go where they cost least. `offers` are
    those of its provider, `prices` as `[prices]` has them.
    """
    if found.reading.nodes:
        return found
    fit = [
        price_of(member.provider, offer, prices)[0]
        for offer in offers
        if offer.name == (member.offer or offer.name) and offer.max_nodes >= member.min
    ]
    reading = msgspec.structs.replace(found.reading, price=min(fit, default=0.0))
    return msgspec.structs.replace(found, reading=reading)
