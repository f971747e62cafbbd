# SPDX-License-Identifier: MIT
"""Refusals of earlier ticks that still stand, as nothing they rest on has changed.

At a site where thousands of jobs wait for nodes that cannot be had, nearly all of a
tick would be spent on refusing them again. So a refused job that is held, or that waits
where it harms nobody, is not looked at again until the job itself changes, or something
on which refusals rest. Then all of them are judged anew, the most urgent first, at most
AT_ONCE in each tick. If they are many, the next round begins only after the daemon has
had twenty times as long for other work. Meanwhile the first of them are judged in each
tick: what becomes free goes to them, not to the jobs whose turn it is to be judged.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping, Set

import msgspec

from burst.core.jobs.burst_worth import BY_FORECAST
from burst.core.jobs.job_context import never_on_own_nodes
from burst.core.jobs.job_holds import is_failed
from burst.core.jobs.queues import in_stopped_queue
from burst.core.jobs.refusal_inputs import RefusalInputs
from burst.core.plan.demands import Promise
from burst.core.plan.shortfall import Shortfall
from burst.core.records import Records
from burst.core.resizing import IdlePart
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.hold import Hold, HoldState, urgency_before
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView

AT_ONCE = 500
"""The most jobs that are judged anew in one tick."""
FEW = 100
"""Up to so many jobs are judged anew on each change: that takes five milliseconds."""
_PAUSE_S = 0.001
"""The pause before the next round, in seconds for each job beyond `FEW`: twenty times
what judging that job takes."""

_replace = msgspec.structs.replace


class RefusalCache(msgspec.Struct, frozen=True, kw_only=True):
    """The refusals of one tick, for the next, and what that tick saw and left."""

    inputs: RefusalInputs
    """Those before the plan of the tick, so that a burst that it made, gave to a job or
    ended counts as a change in the next tick."""
    jobs: Mapping[JobId, JobView] = {}
    """All jobs."""
    here: Set[JobId] = frozenset()
    """Jobs that were given room that others could have had."""
    holds: Mapping[JobId, Hold] = {}
    """All holds."""
    decisions: Mapping[JobId, Decision] = {}
    """The refusals of jobs that wait where they harm nobody."""
    outdated: tuple[JobId, ...] = ()
    """The jobs that are still to be judged anew, the next first."""
    changed: bool = False
    """Whether all refusals are to be judged anew once `outdated` is empty."""
    pause: float = 0.0
    """When the next round may begin, in seconds since the epoch."""
    shortfalls: Mapping[JobId, Shortfall] = {}
    """The shortfalls of jobs that could not have all the nodes that they need."""
    promises: tuple[Promise, ...] = ()
    """What was promised to others when these jobs were refused."""
    overtaken: Mapping[JobId, int] = {}
    """By pending job: how many nodes that it waits for were given to others."""
    idle_parts: Mapping[BurstId, IdlePart] = {}
    """Bursts whose last nodes are idle while their other nodes work."""


class JobDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """What one tick decided about its jobs."""

    left: RefusalCache
    """What the tick saw, and what it left over; of its refusals those that stood."""
    fresh: Mapping[JobId, Decision]
    """The decisions on all pending jobs that were looked at."""
    refused: Mapping[JobId, Decision]
    """Those of them that `refusals` returns."""
    left_to_flux: Set[JobId] = frozenset()
    """Refused jobs that could run on own nodes: if Flux has them, they block nobody."""
    unsettled: bool = False
    """Whether some job may be starting at this moment."""
    behind: bool = False
    """Whether some jobs are left for a later tick."""


def unchanged_jobs_refusals(
    before: RefusalCache | None, records: Records, lead: LeadView | None
) -> Mapping[JobId, Decision]:
    """Return the refusals of jobs that have not changed, and whose hold has not."""
    if before is None or lead is None:
        return {}
    jobs, old = lead.jobs, before.jobs
    other = {job for job in before.decisions if jobs.get(job) is not old[job]}
    holds, held = records.holds, before.holds
    if holds is not held:
        other |= {
            job for job in before.decisions if holds.get(job) is not held.get(job)
        }
    if not other:
        return before.decisions
    return {job: v for job, v in before.decisions.items() if job not in other}


def standing_refusals(
    before: RefusalCache,
    same: Mapping[JobId, Decision],
    inputs: RefusalInputs,
    lead: LeadView,
    now: float,
) -> RefusalCache:
    """Return the cache with the refusals that stand, and what is judged anew later.

    `same` are the refusals of jobs that have not changed.
    """

    def place(job: JobId) -> tuple[int, JobId]:
        return -urgency_before(before.holds.get(job), lead.jobs[job].urgency), job

    changed = before.changed or _has_changed(before, inputs, lead, now)
    queue = [job for job in before.outdated if job in same]
    pause = before.pause
    if not (changed or queue):
        return _replace(before, decisions=same, outdated=())
    if changed and not queue and now >= pause:
        queue = sorted(same, key=place)
        changed, pause = False, now + _PAUSE_S * max(0, len(queue) - FEW)
    due = {*queue[:AT_ONCE], *heapq.nsmallest(FEW, same, key=place)}
    stand = {job: found for job, found in same.items() if job not in due}
    later = tuple(queue[AT_ONCE:])
    return _replace(
        before, decisions=stand, outdated=later, changed=changed, pause=pause
    )


def without_refusals(cache: RefusalCache | None) -> RefusalCache | None:
    """Return the cache with which all jobs are judged anew, as if none was refused."""
    return cache and _replace(cache, decisions={}, outdated=())


def _has_changed(
    before: RefusalCache, inputs: RefusalInputs, lead: LeadView, now: float
) -> bool:
    """Tell whether something on which refusals rest has changed."""
    if now >= before.inputs.until or inputs != before.inputs:
        return True
    # A job ahead of them may be canceled, or less urgent.
    ahead = (*before.here, *(promise.job for promise in before.promises))
    return any(lead.jobs.get(job) is not before.jobs[job] for job in ahead)


def refusals(
    fresh: Mapping[JobId, Decision], helped: Container[JobId]
) -> dict[JobId, Decision]:
    """Return the decisions that refuse jobs; `helped` have bursts, if not enough."""
    return {
        job: decision
        for job, decision in fresh.items()
        if (decision.reason.about_job.refused or decision.reason in BY_FORECAST)
        and job not in helped
    }


def cache_refusals(made: JobDecisions, records: Records) -> RefusalCache:
    """Return the refusals of this tick: those that stood, and new ones.

    `records` are those that the tick leaves.
    """
    new = {
        job: decision
        for job, decision in made.refused.items()
        if _rests(made, job, records.holds.get(job))
    }
    stood = made.left.decisions
    decisions = {**stood, **new} if new else stood
    return _replace(made.left, holds=records.holds, decisions=decisions)


def _rests(made: JobDecisions, job: JobId, hold: Hold | None) -> bool:
    """Tell whether a refused job needs no look in the next tick.

    Neither the daemon nor Flux would do anything with it: its hold shows, or it needs
    none, as it is in the stopped queue, or our scheduler has it, or it waits for own
    nodes. In the last two cases no room on own nodes was counted as its own.
    """
    intake, view = made.left.inputs.settings.intake, made.left.jobs[job]
    if is_failed(made.fresh[job], intake):
        return False  # failing it is repeated until it has ended
    released = hold is None or hold.state is HoldState.RELEASED
    if released and job in made.left_to_flux and not in_stopped_queue(view, intake):
        # It blocks nobody: it runs on own nodes in its turn.
        return job not in made.left.here
    if hold is not None:
        return hold.state is HoldState.HELD
    if never_on_own_nodes(view):
        return False  # Flux could start it here before it is held
    if intake.mode == "scheduler":
        return job not in made.left.here
    return in_stopped_queue(view, intake)
