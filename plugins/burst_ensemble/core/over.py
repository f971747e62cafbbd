# SPDX-License-Identifier: MIT
"""What is left of a run of an ensemble: bursts and jobs after its end, and what is not
counted in the next run.
"""

from __future__ import annotations

from collections.abc import Collection

from burst.core.records import Records
from burst.model.burst import Burst, Tag
from burst.model.lead import PENDING, JobState, LeadView
from burst_ensemble.core.read_members import is_usable, job_group, jobs_by_member
from burst_ensemble.core.record import (
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    MemberBook,
)


def members_with_pending(lead: LeadView | None) -> frozenset[Tag]:
    """Return the members of which jobs have yet to start; none without a lead."""
    if lead is None:
        return frozenset()
    return frozenset(
        tag
        for job in lead.jobs.values()
        if job.state in PENDING and (tag := job.tag) is not None
    )


def is_over(
    ensembles: EnsembleRecords, name: str, records: Records, pending: Collection[Tag]
) -> bool:
    """Tell whether an ensemble has ended and neither a burst nor a job is left.

    `records` are the daemon's, `pending` is what `members_with_pending` returns. A job
    that runs is on a burst. One that waits may be all that is left: of members that had
    no burst when they ended.
    """
    state, start = ensembles.states[name], ensembles.starts[name]
    if state.record.ended is None or any(_is_of(each, name) for each in records.live):
        return False
    # Jobs for a member that it does not have are nobody's to end.
    return not any(
        start.membership(member["name"]) in pending
        for member in start.tables["members"]
        if member["mode"] != "external"
    )


def lost_members(ensembles: EnsembleRecords, records: Records) -> list[Burst]:
    """Return the live bursts of ensembles that are not on record.

    Their record was lost or cannot be read: nobody would ever end them. Isolated ones
    end with their job.
    """
    return [
        burst
        for burst in records.live
        if burst.lease.tag is not None
        and "/" in burst.lease.tag.name
        and burst.lease.tag.name.partition("/")[0] not in ensembles.states
        and burst.lease.isolated is None
        and is_usable(burst)
    ]


def _is_of(burst: Burst, name: str) -> bool:
    """Tell whether a burst is of a member of the ensemble of that name."""
    member = burst.lease.tag
    return member is not None and member.name.startswith(f"{name}/")


def books_of_earlier_run(
    records: Records, lead: LeadView | None, file: EnsembleStart, now: float
) -> dict[str, MemberBook]:
    """Return the first books of an ensemble, in which these are as counted already.

    The lead shows jobs for a while after their end, and bursts stay on record.
    """
    books: dict[str, MemberBook] = {}
    jobs = jobs_by_member(lead) if lead is not None else {}
    for member in file.tables["members"]:
        whose = file.membership(member["name"])
        ended = {
            job.id: KnownJob(job_group(job), 1, counted="finish", seen=now)
            for job in jobs.get(whose, ())
            if job.state is JobState.INACTIVE
        }
        paid = sorted(b.id for b in records.bursts.values() if b.lease.tag == whose)
        if ended or paid:
            books[whose.name] = MemberBook(jobs=ended, settled_bursts=tuple(paid))
    return books
