# SPDX-License-Identifier: MIT
"""What an earlier run of an ensemble left, which does not count in the next."""

from __future__ import annotations

from burst.core.records import Records
from burst.model.lead import JobState, LeadView
from burst_ensemble.core.read_members import job_group, jobs_by_member
from burst_ensemble.core.stored import EnsembleStart, KnownJob, MemberBook


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
