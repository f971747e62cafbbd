# SPDX-License-Identifier: MIT
"""Refusals of earlier ticks that still hold, as nothing they rest on has changed.

At a site where thousands of jobs wait for what cannot be had, nearly all of a tick
would go into refusing them again. A refused job that is held, or that waits where it
harms nobody, is not looked at before the job itself, or something that its refusal
rests on, is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import msgspec

from burst.config import Settings
from burst.core.idle_parts import IdlePart
from burst.core.placement.job_backoff import JobBackoff
from burst.core.placement.judging_turns import BY_FORECAST, Backlog
from burst.core.placement.plan import Promise
from burst.core.placement.refusal_inputs import CapacityPhase, RefusalInputs
from burst.core.records import Records
from burst.core.select.job_holds import is_failed
from burst.core.select.queues import in_stopped_queue
from burst.core.select.triage import never_on_own_nodes
from burst.core.world import World
from burst.core.worth.rules import RuleSet
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.reason import Reason


class RefusalCache(msgspec.Struct, frozen=True, kw_only=True):
    """The refusals of one tick, for the next, and what that tick saw and left."""

    inputs: RefusalInputs
    jobs: Mapping[JobId, JobView] = {}
    """All jobs."""
    here: Set[JobId] = frozenset()
    """Jobs that were given room that others could have had."""
    holds: Mapping[JobId, Hold] = {}
    """All holds."""
    decisions: Mapping[JobId, Decision] = {}
    """The refusals: of jobs that wait where they harm nobody."""
    shortfalls: Mapping[JobId, JobBackoff] = {}
    """Of jobs that could not have all the nodes that they need."""
    unforecast: Mapping[JobId, float] = {}
    """Since when jobs whose rule asks for a forecast have had none."""
    rules: RuleSet | None = None
    """Those of the settings, as far as jobs were compared with them; None for none."""
    backlog: Backlog = Backlog()
    """Jobs whose refusals are outdated, and that are looked at in a later tick."""
    promises: tuple[Promise, ...] = ()
    """What was promised to others when these jobs were refused."""
    gave: bool = False
    """Whether jobs were given nodes. A burst that is kept for them may by now be worth
    it to jobs that were judged before them."""
    grew: bool = False
    """Whether a burst grows in place of a further one. That was settled once all jobs
    were judged, so that no refusal knows of it."""
    reordered: bool = False
    """Whether a job to which ranks are promised was held then, which may have put it
    behind jobs that were refused as ranks are promised: it had another urgency."""
    idle_parts: Mapping[BurstId, IdlePart] = {}
    """Bursts of which the last nodes are idle while others work."""

    def without_refusals(self) -> RefusalCache:
        """Return what it says of the jobs that decides, not only spares work."""
        return msgspec.structs.replace(self, decisions={}, backlog=Backlog())


class JobDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """What one tick decided about its jobs."""

    left: RefusalCache
    """What the tick saw and, of what there was, left; without its refusals."""
    helped: Set[JobId] = frozenset()
    """Jobs that have bursts, though not enough."""
    left_to_flux: Set[JobId] = frozenset()
    """Jobs that own nodes would do for: where Flux has them, they block nobody."""
    still_refused: Mapping[JobId, Decision]
    """On jobs that were not looked at again."""
    fresh: Mapping[JobId, Decision]
    """On all other pending jobs."""
    unsettled: bool = False
    """Whether some job may be starting at this moment."""
    behind: bool = False
    """Whether some jobs are left for a later tick."""


def rules_of(before: RefusalCache | None, settings: Settings, world: World) -> RuleSet:
    """Return the rules of the settings; those of the tick before, if they are these."""
    known = before.rules if before is not None else None
    if known is not None and before is not None:
        same = before.inputs.settings is settings
        if same and known.userids == world.userids:
            return known
    return RuleSet(settings.rules, world.userids)


def unchanged_jobs_refusals(
    before: RefusalCache | None, records: Records, lead: LeadView | None
) -> Mapping[JobId, Decision]:
    """Return the refusals of jobs that are as they were: the job, and our hold."""
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


def valid_refusals(
    before: RefusalCache | None,
    same: Mapping[JobId, Decision],
    inputs: RefusalInputs,
    lead: LeadView,
    now: float,
) -> Mapping[JobId, Decision]:
    """Return those of the unchanged jobs' refusals that hold on these grounds."""
    if before is None or before.grew or not inputs.no_larger(before.inputs):
        return {}
    same = _without_worthwhile(same, before, inputs, now)
    same = _without_forecast(same, before.unforecast, inputs, now)
    if not before.inputs.own <= inputs.own:
        # Own nodes may be gone that a job was left to wait for, as it now may not be.
        same = {j: v for j, v in same.items() if _stays_held(before, j)}
    ordered = not (before.reordered or _is_first_changed(before, lead))
    if ordered and now < before.inputs.until and inputs.no_better(before.inputs):
        return {} if _room_may_be_left(before, inputs, lead) else same
    return lasting_refusals(same, lead, has_room=inputs.has_room)


def _without_worthwhile(
    same: Mapping[JobId, Decision],
    cache: RefusalCache,
    inputs: RefusalInputs,
    now: float,
) -> Mapping[JobId, Decision]:
    """Return the refusals without those of jobs for which a burst may pay by now.

    As time goes by a start that was forecast comes nearer, so that a burst saves less.
    """
    before, forecasts = cache.inputs, inputs.forecasts or {}
    changed = cache.gave or inputs.times != before.times
    # On own nodes that went away the job cannot wait.
    changed = changed or inputs.free.keys() != before.free.keys()
    if not changed and inputs.forecasts is before.forecasts:
        return same
    due = set()
    for job, decision in same.items():
        if decision.reason is Reason.NOT_WORTH:
            here = forecasts.get(job)
            then = decision.facts["comparison"]
            wait = here.expected - now if here else 0.0
            # A live burst, if it was not worth it before, may be for a longer wait.
            longer = inputs.has_room and wait > then.here.expected - then.now
            if changed or not here or longer or wait >= then.pays_after:
                due.add(job)
    return {job: v for job, v in same.items() if job not in due} if due else same


def _without_forecast(
    same: Mapping[JobId, Decision],
    unforecast: Iterable[JobId],
    inputs: RefusalInputs,
    now: float,
) -> Mapping[JobId, Decision]:
    """Return the refusals without those for want of a forecast that is there now.

    Or that has been waited for as long as the settings say.
    """
    forecasts = inputs.forecasts or {}
    due = set()
    for job in unforecast:
        decision = same.get(job)
        if decision is not None and decision.reason is Reason.NOT_FORECAST:
            late: float = decision.facts["until"]
            if job in forecasts or now >= late:
                due.add(job)
    return {job: v for job, v in same.items() if job not in due} if due else same


def lasting_refusals(
    same: Mapping[JobId, Decision], lead: LeadView, *, has_room: bool
) -> Mapping[JobId, Decision]:
    """Return the refusals that hold whatever becomes free.

    Where live bursts have room, as `RefusalInputs.has_room`, a job may need fewer nodes
    of its own than its user's limit: nobody bears those that somebody requested.
    """
    jobs = lead.jobs
    return {
        job: decision
        for job, decision in same.items()
        if decision.reason.about_job.lasting
        and _is_plain(jobs[job])
        and not (has_room and decision.reason is Reason.OVER_LIMIT)
    }


def cache_refusals(made: JobDecisions, records: Records) -> RefusalCache:
    """Return the refusals of this tick: those that stood, and new ones.

    `records` are those that the tick leaves.
    """
    new = {
        job: decision
        for job, decision in made.fresh.items()
        if (decision.reason.about_job.refused or decision.reason in BY_FORECAST)
        and job not in made.helped
        and _rests(made, job, records.holds.get(job))
    }
    return msgspec.structs.replace(
        made.left,
        holds=records.holds,
        decisions={**made.still_refused, **new} if new else made.still_refused,
    )


def _rests(made: JobDecisions, job: JobId, hold: Hold | None) -> bool:
    """Tell whether a refused job needs no look in the next tick.

    Neither the daemon nor Flux would do anything with it.

    It is held, and seen to be; or it need not be, in the stopped queue, or in our
    scheduler, or as it waits for own nodes, and no room on those was counted as its.
    """
    intake, view = made.left.inputs.settings.intake, made.left.jobs[job]
    if is_failed(made.fresh[job], intake):
        return False  # it is failed, until that took
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


def _stays_held(before: RefusalCache, job: JobId) -> bool:
    """Tell whether the scheduler does not have the job, whatever nodes there are."""
    hold = before.holds.get(job)
    return hold is not None and hold.state is HoldState.HELD


def _is_first_changed(before: RefusalCache, lead: LeadView) -> bool:
    """Tell whether a job to which ranks were promised is another than it was.

    Its user may have lowered its urgency: others may be ahead of it.
    """
    jobs = (promise.job for promise in before.promises)
    return any(lead.jobs.get(job) is not before.jobs[job] for job in jobs)


def _room_may_be_left(
    before: RefusalCache, inputs: RefusalInputs, lead: LeadView
) -> bool:
    """Tell whether own nodes may be free that were given to jobs and are not taken."""
    if not before.here:
        return False
    changed = inputs.free != before.inputs.free
    others = any(lead.jobs.get(job) is not before.jobs[job] for job in before.here)
    # Whoever got a burst since then waits for that, and leaves own nodes to others.
    elsewhere = any(
        stage is not CapacityPhase.GOING and not before.here.isdisjoint(jobs)
        for stage, jobs in inputs.bursts.values()
    )
    return changed or others or elsewhere


def _is_plain(job: JobView) -> bool:
    """Tell whether any node of the right shape would do."""
    return job.request is not None and not job.request.constraint
