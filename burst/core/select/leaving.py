# SPDX-License-Identifier: MIT
"""Which jobs leave the line for own nodes, as a burst pays for them.

A forecast asks this while it simulates the queue, so that jobs behind one for which a
burst pays are judged by what it leaves to them. Judged each by itself, all jobs of an
array would be bought nodes, though with a few of them gone the others hardly wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from burst.core.select.job_policy import BY_FORECAST, JobPolicy
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason

# A job for which a burst pays, and that the planner refuses, is counted on to get one
# for so many seconds: one tick does not place all jobs. After that it stays in line.
PLACED_WITHIN_S = 60.0


class Leaving:
    """Tells it of the jobs on which the last tick has decided."""

    def __init__(
        self,
        policy: JobPolicy,
        jobs: Mapping[JobId, JobView],
        decisions: Mapping[JobId, Decision],
        left: Mapping[JobId, float],
        now: float,
    ) -> None:
        """`left` is `Leaving.left` after the last forecast."""
        self._policy = policy
        self._jobs = jobs
        self._decisions = decisions
        self._now = now
        self.left = {
            job: at
            for job, at in left.items()
            if job in decisions and now - at <= PLACED_WITHIN_S
        }
        """When jobs that still wait last left the line for the forecast alone."""

    def leaves(self, job: JobId, at: float) -> bool:
        """Tell whether a burst is made soon for a job that would start then."""
        decision = self._decisions.get(job)
        if decision is None:
            return False
        if decision.reason in BY_FORECAST:
            if self._policy.pays(self._jobs[job], at):
                self.left[job] = self._now
                return True
            return False
        if job not in self.left or not _has_no_place(decision):
            return False
        return self._policy.pays(self._jobs[job], at)

    def is_judged(self, job: JobId) -> bool:
        """Tell whether a tick may decide on a job by this forecast.

        Not on one that was not asked whether it leaves, and could have: it waits for
        the next forecast. Else a hundred jobs that were submitted together, or have
        tried own nodes for as long as their rule says, would all be bought nodes.
        """
        decision = self._decisions.get(job)
        if decision is None:
            return False
        return decision.reason in BY_FORECAST or _has_no_place(decision)


def stay_after_all(
    left: Mapping[JobId, float], decisions: Mapping[JobId, Decision], now: float
) -> bool:
    """Tell whether some job that left the line was counted on for long enough."""
    return any(
        now - at > PLACED_WITHIN_S
        and job in decisions
        and _has_no_place(decisions[job])
        for job, at in left.items()
    )


def _has_no_place(decision: Decision) -> bool:
    """Tell whether the planner looked for nodes for a job, and found none free."""
    reason = decision.reason
    if reason in BY_FORECAST:
        return False
    return reason is Reason.RESERVED or reason.about_job.refused
