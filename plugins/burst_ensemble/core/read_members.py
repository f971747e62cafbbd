# SPDX-License-Identifier: MIT
"""Read members from the daemon's answer about bursts and jobs, and find what an
ensemble has left after its end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from burst.core.tagged_nodes import JobRun, TaggedBurst, TaggedJob, TaggedNodes
from burst.model.active_job import JobOutcome
from burst.model.burst import Tag
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobState
from burst.provider import Offer
from burst_ensemble.config.spec import MemberSpec
from burst_ensemble.core.job_rows import (
    GROUP,
    JobRow,
    JobsSeen,
    MemberState,
    SizedReading,
    count_jobs,
)
from burst_ensemble.core.record import (
    Ensemble,
    Member,
    MemberRecord,
)

OutcomesOf = Callable[[MemberRecord, Sequence[TaggedJob]], Mapping[JobId, JobOutcome]]
"""Returns how jobs of a member ended that are not among these jobs of the lead."""


def read_members(
    one: Ensemble, nodes: TaggedNodes, outcomes: OutcomesOf
) -> dict[str, MemberState]:
    """Return the members of an ensemble as they are now, without external ones."""
    jobs = _jobs_by_tag(nodes)
    return {
        member.name: _read_member(member, nodes, jobs.get(member.tag, ()), outcomes)
        for member in one.members
        if not member.spec.is_external
    }


def _jobs_by_tag(nodes: TaggedNodes) -> Mapping[Tag, Sequence[TaggedJob]]:
    """Return the jobs by tag, with one pass for all members."""
    found: dict[Tag, list[TaggedJob]] = {}
    for job in nodes.jobs:
        found.setdefault(job.tag, []).append(job)
    return found


def _read_member(
    member: Member,
    nodes: TaggedNodes,
    jobs: Sequence[TaggedJob],
    outcomes: OutcomesOf,
) -> MemberState:
    its = [burst for burst in nodes.bursts if burst.tag == member.tag]
    live = [burst for burst in its if burst.live]
    after = _settle(member.record, [burst for burst in its if not burst.live])
    runs = {b.job: b.run for b in its if b.job is not None and b.run is not None}
    ended = outcomes(member.record, jobs)
    seen = JobsSeen(
        [_row(job, runs.get(job.id)) for job in jobs],
        {job: _outcome(found, runs.get(job)) for job, found in ended.items()},
        held_back={job.id for job in jobs if job.held_back},
    )
    counted = count_jobs(after, seen, nodes.now)
    offered = offered_price(member.spec, nodes.offers) or 0.0
    reading = msgspec.structs.replace(
        counted.reading,
        spent=after.settled + sum(burst.cost for burst in live),
        price=live[-1].price if live else offered,
    )
    return MemberState(_with_nodes(reading, live), counted.member)


def _row(job: TaggedJob, run: JobRun | None) -> JobRow:
    """Return a job as a row. With `run`, the row shows its run in an isolated burst."""
    state, finish = job.state, job.t_finish
    if run is not None:
        finish = run.ended or finish
        if state in PENDING:
            state = JobState.CLEANUP if run.ended else JobState.RUN
    return JobRow(
        id=job.id,
        state=state,
        group=job.attributes.get(GROUP, ""),
        nodes=job.nodes,
        urgency=job.urgency,
        t_submit=job.t_submit,
        t_start=run.began if run else job.t_start,
        t_finish=finish,
        result=job.result,
    )


def _outcome(found: JobOutcome, run: JobRun | None) -> JobOutcome:
    """Return how a job ended, with the times of its run in an isolated burst."""
    if run is None:
        return found
    return JobOutcome(found.result, run.began, run.ended or found.t_finish)


def _with_nodes(reading: SizedReading, live: Iterable[TaggedBurst]) -> SizedReading:
    paid = list(live)
    # An isolated burst keeps all its nodes until its end, and then others take its
    # place: it counts even when it is not usable any more.
    its = [burst for burst in paid if burst.usable or burst.isolated]
    return msgspec.structs.replace(
        reading,
        nodes_paid=sum(burst.nodes for burst in paid),
        size=sum(b.nodes if b.isolated else b.wanted for b in its),
        nodes_up=sum(burst.up.nodes for burst in its),
        nodes_free=sum(burst.up.free for burst in its),
        cores_up=sum(burst.up.cores for burst in its),
        cores_free=sum(burst.up.cores_free for burst in its),
    )


def _settle(before: MemberRecord, gone: Sequence[TaggedBurst]) -> MemberRecord:
    """Return the member's record with the cost of bursts that are gone.

    Bursts stay on record only for a while, so each is added here once.
    """
    new = [burst for burst in gone if burst.id not in before.settled_bursts]
    return msgspec.structs.replace(
        before,
        settled=before.settled + sum(burst.cost for burst in new),
        settled_bursts=tuple(sorted(burst.id for burst in gone)),
    )


def offered_price(
    member: MemberSpec, offers: Mapping[str, Sequence[Offer]]
) -> float | None:
    """Return the price of the offer that a member without nodes would take.

    `offers` has those of each provider. Returns None if no offer is for the member.

    At price 0 the member would attract the jobs that go to the cheapest member.
    """
    fit = [
        offer.price
        for offer in offers.get(member.provider, ())
        if offer.name == (member.offer or offer.name) and offer.max_nodes >= member.min
    ]
    return min(fit, default=None)


def is_over(one: Ensemble, nodes: TaggedNodes, pending: Collection[Tag]) -> bool:
    """Tell whether an ensemble has ended and no burst, job or command is left.

    `pending` is `nodes.tags_waiting()`. A job that runs is on a burst. A job that waits
    may be left without a burst, if its member had none when it ended. Returns False
    while the daemon cannot read the lead.
    """
    if one.record.ended is None or not nodes.is_read:
        return False
    bursts = f"{one.record.name}/"
    if any(each.live and each.tag.name.startswith(bursts) for each in nodes.bursts):
        return False
    # No ensemble ends jobs whose tag names a member that does not exist.
    return not any(
        member.tag in pending or member.record.unconfirmed_commands
        for member in one.members
        if not member.spec.is_external
    )


def lost_members(unread: Collection[str], nodes: TaggedNodes) -> list[TaggedBurst]:
    """Return the live bursts of ensembles whose records cannot be read.

    Nothing else would end these bursts before their lease. Isolated bursts are left
    out: they end with their job. Programs other than ensembles have such tags, too.
    """
    return [
        burst
        for burst in nodes.bursts
        if burst.live
        and burst.usable
        and not burst.isolated
        and "/" in burst.tag.name
        and burst.tag.name.partition("/")[0] in unread
    ]


def with_earlier_run(one: Ensemble, nodes: TaggedNodes) -> Ensemble:
    """Return a new ensemble in which bursts of an earlier run count as known.

    They stay on record for a while: without this, the new run would pay for them.
    """
    record = one.record
    for member in one.members:
        paid = sorted(burst.id for burst in nodes.bursts if burst.tag == member.tag)
        record = record.with_member(member.name, settled_bursts=tuple(paid))
    return Ensemble(one.start, record)
