# SPDX-License-Identifier: MIT
"""Whose the leased ranks are, for a scheduler that starts jobs by itself."""

from __future__ import annotations

from burst.core.draft import COUNTED_ON
from burst.core.room import is_up
from burst.core.world import Books
from burst.model.jobid import JobId
from burst.model.lead import Leases


def leases(books: Books) -> Leases:
    """Return what sched-burst is told.

    A job gets its ranks once all of its bursts are up, as a held job is released then:
    of a gang that is still joining, no job may take a part.
    """
    jobs: dict[JobId, frozenset[int]] = {}
    waiting: set[JobId] = set()
    ranks: set[int] = set()
    for burst in books.live:
        ranks.update(burst.lease.ranks)
        if burst.quarantined or burst.state not in COUNTED_ON:
            continue
        for job in burst.jobs - burst.started:
            jobs[job] = jobs.get(job, frozenset()).union(burst.lease.ranks)
            if not is_up(burst):
                waiting.add(job)
    return Leases(
        {job: frozenset() if job in waiting else jobs[job] for job in sorted(jobs)},
        frozenset(ranks),
    )
