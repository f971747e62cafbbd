# SPDX-License-Identifier: MIT
"""Which ranks are leased, and for which jobs, in the form sent to sched-burst."""

from __future__ import annotations

from burst.core.plan.capacity import (
    is_up,
    missing_nodes,
    waits_for_growth,
)
from burst.core.records import ASSIGNABLE, RecordsView
from burst.model.burst import Burst
from burst.model.jobid import JobId
from burst.model.lead import LeadView, LeasedRanks


def rank_leases(records: RecordsView, lead: LeadView) -> LeasedRanks:
    """Return the ranks that are leased, and those on which each job may start.

    A job gets its ranks once all of its bursts are up, as a held job is released then:
    of a gang that is still joining, or that lacks nodes, no job may take a part.
    """
    jobs: dict[JobId, frozenset[int]] = {}
    bursts_of: dict[JobId, list[Burst]] = {}
    waiting: set[JobId] = set()
    ranks: set[int] = set()
    for burst in records.live:
        ranks.update(burst.lease.ranks)
        if burst.quarantined or burst.state not in ASSIGNABLE:
            continue
        for job in burst.jobs - burst.started:
            bursts_of.setdefault(job, []).append(burst)
            jobs[job] = jobs.get(job, frozenset()).union(burst.lease.ranks)
            if not is_up(burst):
                waiting.add(job)
    for job, bursts in bursts_of.items():
        view = lead.jobs.get(job)
        request = view.request if view else None
        if request is not None and (
            missing_nodes(request, bursts, lead)[0]
            or waits_for_growth(request, bursts, lead)
        ):
            waiting.add(job)
    return LeasedRanks(
        {job: frozenset() if job in waiting else jobs[job] for job in sorted(jobs)},
        frozenset(ranks),
    )
