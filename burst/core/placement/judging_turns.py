# SPDX-License-Identifier: MIT
"""Which jobs that were not worth a burst are judged again in a tick, and which later.

A new forecast, or a burst that came online, may change what a burst is worth to ten
thousand jobs. All of them in one tick would keep the lead and the providers waiting. So
each tick judges a part of them, and the others keep their decision until it is their
turn. They do so in the order in which their decisions became outdated, and among equals
in the order of the queue; none waits for more than `WITHIN_TICKS` ticks.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason

BY_FORECAST = (Reason.NOT_WORTH, Reason.NOT_FORECAST)
"""Decisions that leave a job to its turn on own nodes, by a forecast or for want of
one."""
AT_ONCE = 500
"""So many jobs are judged again in one tick."""
WITHIN_TICKS = 20
"""More, where otherwise a job would have to wait for more ticks than this."""


class Backlog(msgspec.Struct, frozen=True):
    """Jobs that are still to be judged again."""

    jobs: tuple[JobId, ...] = ()
    """The next first."""
    at_once: int = 0
    """So many are judged in each tick until there are none left."""


def take_turns(
    same: Mapping[JobId, Decision],
    valid: Mapping[JobId, Decision],
    before: Backlog,
    jobs: Mapping[JobId, JobView],
) -> tuple[Mapping[JobId, Decision], Backlog]:
    """Return the decisions that stand in this tick, and who is judged in a later one.

    `same` are decisions on jobs that are as they were, `valid` those of them that
    nothing speaks against. `before` is the backlog of the tick before.
    """
    if not before.jobs and len(valid) == len(same):
        return valid, Backlog()
    queue = _queue(same, valid, before, jobs)
    # As long as some wait it never becomes less, so that each has its turn in time.
    at_once = max(AT_ONCE, -(-len(queue) // WITHIN_TICKS), before.at_once)
    later = tuple(queue[at_once:])
    outdated = set(queue)
    stand = {job: v for job, v in valid.items() if job not in outdated}
    stand |= {job: same[job] for job in later}
    return stand, Backlog(later, at_once if later else 0)


def _queue(
    same: Mapping[JobId, Decision],
    valid: Mapping[JobId, Decision],
    before: Backlog,
    jobs: Mapping[JobId, JobView],
) -> list[JobId]:
    """Return the jobs whose decisions are outdated, in the order of their turns."""
    late = [job for job in before.jobs if job in same]
    known = set(late)
    new = [
        job
        for job, decision in same.items()
        if decision.reason in BY_FORECAST and job not in valid and job not in known
    ]
    new.sort(key=lambda job: (-jobs[job].urgency, job))
    return [*late, *new]
