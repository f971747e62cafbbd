# SPDX-License-Identifier: MIT
"""Whether anything of an ensemble is left after its end."""

from __future__ import annotations

from collections.abc import Collection

from burst.core.records import Records
from burst.model.burst import Burst, BurstId, Tag
from burst.model.lead import PENDING, JobView, LeadView
from burst_ensemble.core.on_record import books_of, ensembles_of, starts_of


def is_pending_of(job: JobView, member: Tag) -> bool:
    """Tell whether a job of a member has yet to start."""
    return job.state in PENDING and job.tag == member


def members_with_pending(lead: LeadView | None) -> frozenset[Tag]:
    """Return the members of which jobs have yet to start; none without a lead."""
    if lead is None:
        return frozenset()
    return frozenset(
        tag
        for job in lead.jobs.values()
        if job.state in PENDING and (tag := job.tag) is not None
    )


def is_over(records: Records, name: str, pending: Collection[Tag]) -> bool:
    """Tell whether an ensemble has ended and neither a burst nor a job is left.

    `pending` is what `members_with_pending` returns. A job that runs is on a burst. One
    that waits may be all that is left: of members that had no burst when they ended.
    """
    state, start = ensembles_of(records)[name], starts_of(records)[name]
    if state.record.ended is None or any(_is_of(each, name) for each in records.live):
        return False
    # Jobs for a member that it does not have are nobody's to end.
    return not any(
        start.membership(member["name"]) in pending
        for member in start.tables["members"]
        if member["mode"] != "external"
    )


def unsettled_bursts(records: Records) -> frozenset[BurstId]:
    """Return the bursts of ensembles that run whose cost is yet to be counted.

    Their records are needed until then, and tell when jobs ran that were isolated.
    """
    if not ensembles_of(records):
        return frozenset()
    bursts = records.bursts.values()
    return frozenset(burst.id for burst in bursts if _is_unsettled(records, burst))


def _is_unsettled(records: Records, burst: Burst) -> bool:
    member = burst.lease.tag
    name = member.name.partition("/")[0] if member else ""
    state = ensembles_of(records).get(name)
    if member is None or state is None or state.record.ended is not None:
        return False
    book = books_of(records).get(member.name)
    return book is None or burst.id not in book.settled_bursts


def _is_of(burst: Burst, name: str) -> bool:
    """Tell whether a burst is of a member of the ensemble of that name."""
    member = burst.lease.tag
    return member is not None and member.name.startswith(f"{name}/")
