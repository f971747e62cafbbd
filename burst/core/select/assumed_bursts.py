# SPDX-License-Identifier: MIT
"""Which pending jobs a forecast assumes to burst, and which ticks judge by it.

A forecast simulates the queue in its order. Where a burst pays for a job by the start
that it finds, it goes on as if that job had left the queue. Judged each by itself, all
jobs of an array would be bought nodes, though with a few of them gone the others hardly
wait. What the last tick has decided says which jobs may get a burst at all:

* a job that only waits for its forecast, or for which a burst did not pay, may;
* one for which the planner had no nodes stays in the queue, and is judged by its place;
* any other (not looked at yet, to start at once, or tries own nodes first) stays, too,
  and is not judged by this forecast: a hundred of them that were submitted together
  would all be bought nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from burst.core.select.burst_worth import BY_FORECAST, BurstWorth
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason


def assumed_to_burst(
    worth: BurstWorth,
    jobs: Mapping[JobId, JobView],
    decisions: Mapping[JobId, Decision],
) -> Callable[[JobId, float], bool]:
    """Return what a forecast asks of each job, with the start that it found."""

    def bursts(job: JobId, at: float) -> bool:
        decision = decisions.get(job)
        if decision is None or decision.reason not in BY_FORECAST:
            return False
        return worth.pays(jobs[job], at)

    return bursts


def is_judged(decision: Decision | None) -> bool:
    """Tell whether ticks judge a job on which the last one decided so."""
    if decision is None:
        return False
    reason = decision.reason
    return (
        reason in BY_FORECAST or reason is Reason.RESERVED or reason.about_job.refused
    )
