# SPDX-License-Identifier: MIT
"""One tick as a pure function: sync, select, place, act."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from burst.config import Settings
from burst.core import lifecycle
from burst.core.actions import FREEING, Action
from burst.core.burst_actions import act_on_burst
from burst.core.jobs.assignments import (
    end_late_bursts,
    end_unreleased,
    expire_assignments,
)
from burst.core.jobs.job_context import JobContext
from burst.core.jobs.job_holds import plan_job_holds
from burst.core.jobs.job_rules import JobRules
from burst.core.jobs.refusal_cache import (
    JobDecisions,
    RefusalCache,
    cache_refusals,
    refusals,
    standing_refusals,
    unchanged_jobs_refusals,
)
from burst.core.jobs.refusal_inputs import refusal_inputs
from burst.core.jobs.triage import triage
from burst.core.joined import begin_drain
from burst.core.money.accounts import keep_accounts
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.growth import with_ranks
from burst.core.plan.online_times import learnt
from burst.core.plan.plan_demands import plan_context, plan_demands, record_proposal
from burst.core.plan.shortfall import update_shortfalls
from burst.core.records import RecordChanges, Records, Transaction
from burst.core.resizing import begin_growth, shrink_idle
from burst.core.sync import postponed, sync, take_answers
from burst.core.unusable_bursts import undrain_free_ranks
from burst.core.world import World
from burst.model.burst import Burst, BurstId, Result, State
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

# The number of ended bursts on record, for `burst status --all` and `explain`.
KEPT_ENDED = 100
# How long an ended burst with a tag stays on record at least, in seconds from its end.
# Whoever requested it reads in this time what it cost, and when its isolated job ran.
TAGGED_KEPT_S = 900.0
_NEW = (State.NEW, State.PROVISION)
_IN_THE_WAY = "its ranks are needed for a job that cannot use it as it is"


class TickResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick decided. The records are stored before any action is taken."""

    records: Records
    events: tuple[tuple[BurstId, Event], ...]
    actions: tuple[Action, ...]
    decisions: Mapping[JobId, Decision] = {}
    """The decision on each pending burstable job; empty if the lead was not read."""
    refusal_cache: RefusalCache | None = None
    """The refusals that the next tick may use again; None if there are none."""
    unsettled: bool = False
    """Whether some job may be starting, so that the lead should be read again soon."""
    behind: bool = False
    """Whether some jobs are left for the next tick, which should be soon."""

    @property
    def begins(self) -> bool:
        """Whether it makes a burst, or has one grow."""
        return any(
            event.name == "grow"
            or (event.name == "submit" and self.records.bursts[burst].state in _NEW)
            for burst, event in self.events
        )


def result_of(tx: RecordChanges) -> TickResult:
    """Return the records, events and actions of a transaction, without decisions."""
    return TickResult(
        records=tx.result(),
        events=tuple(tx.events),
        actions=tuple(tx.actions),
    )


def run_tick(
    records: Records,
    world: World,
    settings: Settings,
    now: float,
    cache: RefusalCache | None = None,
) -> TickResult:
    """Record what happened, decide on the jobs, act on the bursts. Pure.

    `cache` comes from the previous tick. Its refusals save work and change no decision;
    without it, jobs that lack a part of their nodes begin their wait anew.
    """
    tx = Transaction(records, world, settings, now)
    if cache is not None:
        cache = postponed(cache, world.unread, now)
    same = unchanged_jobs_refusals(cache, records, world.lead)
    sync(tx, same)
    decided: JobDecisions | None = None
    if world.lead is not None:
        decided = _decide_on_jobs(tx, cache, same)
    for burst in list(tx.bursts.values()):
        # A burst that was planned in this tick has its provider call already.
        if burst.id in records.bursts and not burst.quarantined:
            act_on_burst(tx, burst)
    if world.lead is not None:
        undrain_free_ranks(tx)
    keep_accounts(tx)
    tx.times = learnt(tx.times, tx.events, tx.bursts, tx.unreadable)
    _drop_oldest(tx)
    made = result_of(tx)
    if decided is None:
        return msgspec.structs.replace(made, refusal_cache=cache)
    return msgspec.structs.replace(
        made,
        decisions={**decided.left.decisions, **decided.fresh},
        refusal_cache=cache_refusals(decided, made.records),
        unsettled=decided.unsettled,
        behind=decided.behind,
    )


def free_unused(
    records: Records,
    world: World,
    settings: Settings,
    now: float,
    *,
    stored: bool = False,
) -> TickResult:
    """Record what happened, and take down what is not needed; begin nothing. Pure.

    Used while the store refuses the records, or `run_tick` fails: nothing may be begun
    then, but idle bursts still cost money, as do those whose jobs can only be released
    on record. Unless it is `stored`, isolated bursts stay, as the results of their jobs
    would be lost.
    """
    tx = Transaction(records, world, settings, now)
    sync(tx, {})
    if world.lead is not None and world.halt is not None:
        end_unreleased(tx, world.halt)
    for burst in list(tx.bursts.values()):
        # A new one would be on record as provisioned, and its provider is not called.
        stays = burst.lease.isolated and (not stored or burst.state is State.NEW)
        if not (burst.quarantined or stays):
            act_on_burst(tx, burst)
    keep_accounts(tx)
    tx.actions = [action for action in tx.actions if isinstance(action, FREEING)]
    return result_of(tx)


def record_answers(
    records: Records, world: World, settings: Settings, now: float
) -> TickResult:
    """Record the answers of providers, and nothing else that was read."""
    tx = Transaction(records, world, settings, now)
    take_answers(tx)
    tx.actions.clear()
    return result_of(tx)


def _decide_on_jobs(
    tx: Transaction,
    cache: RefusalCache | None,
    same: Mapping[JobId, Decision],
) -> JobDecisions:
    """Decide on each pending job; record new bursts, and hold or release jobs."""
    world, settings = tx.world, tx.settings
    end_late_bursts(tx)
    expire_assignments(tx)
    rules = JobRules(world, settings, tx.now)
    inputs = refusal_inputs(tx, rules.rules)
    before = cache or RefusalCache(inputs=inputs)
    standing = standing_refusals(before, same, inputs, tx.lead, tx.now)
    plan_on = plan_context(tx, world, settings, tx.now, inputs.ranks)
    plan_on.overtaken = before.overtaken
    jobs = JobContext(tx, plan_on, rules, inputs.own)
    bursts_by_job = tx.bursts_by_job()
    found = triage(jobs, bursts_by_job, standing.decisions, before.shortfalls)
    plan = plan_demands(tx, found.demands, plan_on)
    _record_plan(tx, plan, found.demands)
    fresh = {**found.decisions, **jobs.downgrade_final(plan.decisions)}
    shortfalls = update_shortfalls(tx, before.shortfalls, fresh, standing.decisions)
    plan_job_holds(tx, jobs, fresh)
    after = msgspec.structs.replace(
        standing,
        inputs=inputs,
        jobs=tx.lead.jobs,
        here=found.here,
        # Who was given nodes may be gone in the next tick, and its inputs as before.
        changed=standing.changed or plan.gives or plan.promises != before.promises,
        shortfalls=shortfalls,
        promises=plan.promises,
        overtaken={
            **{job: n for job, n in before.overtaken.items() if job in fresh},
            **plan.overtaken,
        },
        idle_parts=shrink_idle(
            tx,
            standing.idle_parts,
            jobs_wait=_may_have_nodes_later(plan, standing.decisions, fresh),
        ),
    )
    refused = refusals(fresh, bursts_by_job)
    return JobDecisions(
        left=after,
        fresh=fresh,
        refused=refused,
        left_to_flux={job for job in refused if jobs.may_wait(tx.lead.jobs[job])},
        unsettled=any(each.reason is Reason.STARTING for each in fresh.values()),
        behind=bool(plan_on.constraints.later or standing.outdated),
    )


def _may_have_nodes_later(plan: Plan, *decisions: Mapping[JobId, Decision]) -> bool:
    """Tell whether a job waits that can have no nodes now."""
    reasons = (each.reason.about_job for known in decisions for each in known.values())
    return bool(plan.promises) or any(r.refused and not r.final for r in reasons)


def _record_plan(tx: Transaction, plan: Plan, demands: Iterable[Demand]) -> None:
    """Record the plan: intents first, then the actions that carry them out."""
    tx.rules = {each.job: each.preferences.rule for each in demands if each.job}
    jobs = tx.lead.jobs
    for proposal in plan.proposals:
        record_proposal(tx, proposal)
    for growth in plan.growths:
        note = f"for job {format_f58(growth.job)}"
        lease = tx.bursts[growth.burst].lease
        larger = with_ranks(lease, growth.ranks, tx.world.identity)
        begin_growth(tx, larger, note, requested=False)
    assigned: dict[BurstId, dict[str, float]] = {}
    for job, bursts in plan.assignments.items():
        for burst in bursts:
            assigned.setdefault(burst, {})[format_f58(job)] = jobs[job].t_submit
    for burst, its_jobs in assigned.items():
        tx.record(burst, "assign", {"jobs": its_jobs})
    _note_forecasts(tx, [*assigned, *(p.lease.id for p in plan.proposals)])
    tx.awaited = plan.awaited
    for ending in sorted(plan.ending):
        begin_drain(tx, tx.bursts[ending], Result.COMPLETED, _IN_THE_WAY)


def _note_forecasts(tx: Transaction, bursts: list[BurstId]) -> None:
    """Note when the jobs of these bursts were expected to start on own nodes.

    People who ask later how much time a burst saved need it.
    """
    forecasts = tx.world.forecasts or {}
    for name in bursts:
        burst = tx.bursts[name]
        found = {job: forecasts[job].expected for job in burst.jobs & forecasts.keys()}
        # To the second: a forecast is not exact, and a job's record is to be short.
        starts = {job: round(at, 0) for job, at in found.items() if math.isfinite(at)}
        tx.bursts[name] = lifecycle.expect_here(burst, starts)


def _drop_oldest(tx: Transaction) -> None:
    """Drop the oldest bursts that have ended and left nothing to undo."""

    def ended(burst: Burst) -> bool:
        # Only the record of an isolated burst shows that its job may have run.
        owes = burst.drained or (burst.may_have_run and burst.jobs)
        read = burst.lease.tag is None or tx.now - burst.since > TAGGED_KEPT_S
        return burst.state is State.INACTIVE and not owes and read

    done = [burst for burst in tx.bursts.values() if ended(burst)]
    for burst in sorted(done, key=lambda burst: burst.since)[:-KEPT_ENDED]:
        del tx.bursts[burst.id]
        if burst.id in tx.outputs:
            del tx.outputs[burst.id]
