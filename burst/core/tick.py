# SPDX-License-Identifier: MIT
"""One tick as a pure function: sync, select, place, act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import msgspec

from burst.config import Settings
from burst.core.actions import Action
from burst.core.burst_actions import act_on_burst, drain_for_job
from burst.core.isolated.placement import IsolatedPlacement, unreadable_isolated_record
from burst.core.placement.capacity import burst_capacities
from burst.core.placement.catalog import read_catalog
from burst.core.placement.job_backoff import JobBackoff
from burst.core.placement.judging_turns import take_turns
from burst.core.placement.leased_slots import LiveBursts, find_leased_slots
from burst.core.placement.limits import Usage
from burst.core.placement.plan import Demand, Plan, PlanRequest
from burst.core.placement.planner import Planner
from burst.core.placement.purchases import Purchases
from burst.core.placement.refusal_cache import (
    JobDecisions,
    RefusalCache,
    cache_refusals,
    lasting_refusals,
    refusal_inputs,
    rules_of,
    unchanged_jobs_refusals,
    valid_refusals,
)
from burst.core.placement.reservation import update_reservation_backoffs
from burst.core.placement.shortfall import update_shortfalls
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.slots import free_rests, free_slots
from burst.core.races import settle_races
from burst.core.records import Records, Transaction
from burst.core.select.assignments import expire_assignments
from burst.core.select.constraints import Constraints
from burst.core.select.job_holds import plan_job_holds
from burst.core.select.triage import JobTriage
from burst.core.sync import sync, take_answers
from burst.core.world import World
from burst.core.worth.accounts import budgets_at, keep_accounts
from burst.core.worth.online_times import learn_times
from burst.model.burst import Burst, BurstId, State
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

# So many ended bursts stay on record, for `burst status --all` and `explain`.
KEPT_ENDED = 100


class TickResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick decided. The records are stored before any action is taken."""

    records: Records
    events: tuple[tuple[BurstId, Event], ...]
    actions: tuple[Action, ...]
    decisions: Mapping[JobId, Decision]
    """On every pending burstable job; empty where the lead could not be read."""
    refusal_cache: RefusalCache | None = None
    """For the next tick."""
    unsettled: bool = False
    """Whether some job may be starting, so that the lead is to be read again soon."""
    behind: bool = False
    """Whether some jobs are left for the next tick, which is to be soon."""


def run_tick(
    records: Records,
    world: World,
    settings: Settings,
    now: float,
    cache: RefusalCache | None = None,
) -> TickResult:
    """Record what happened, decide on the jobs, act on the bursts. Pure.

    `cache` is of the tick before. Its refusals save work and change no decision;
    without it, the waiting of jobs that lack a part of their nodes begins anew.
    """
    tx = Transaction(records, now)
    same = unchanged_jobs_refusals(cache, records, world.lead)
    sync(tx, world, settings.limits, same)
    decided: JobDecisions | None = None
    if world.lead is not None:
        settle_races(tx, world.lead)
        decided = _decide_on_jobs(tx, world, settings, cache, same)
    for burst in list(tx.bursts.values()):
        # For a burst that is planned in this tick, the provider is called already.
        if burst.id in records.bursts and not burst.quarantined:
            act_on_burst(tx, burst, world, settings)
    keep_accounts(tx, world, settings)
    learn_times(tx)
    _drop_oldest(tx)
    after = tx.result()
    decisions: Mapping[JobId, Decision] = {}
    if decided is not None:
        decisions = {**decided.still_refused, **decided.fresh}
        cache = cache_refusals(decided, after)
    return TickResult(
        records=after,
        events=tuple(tx.events),
        actions=tuple(tx.actions),
        decisions=decisions,
        refusal_cache=cache,
        unsettled=decided is not None and decided.unsettled,
        behind=decided is not None and decided.behind,
    )


def record_answers(
    records: Records, world: World, settings: Settings, now: float
) -> TickResult:
    """Record what providers have answered, and nothing else of what was read."""
    tx = Transaction(records, now)
    take_answers(tx, world, settings.limits)
    return TickResult(
        records=tx.result(), events=tuple(tx.events), actions=(), decisions={}
    )


def _decide_on_jobs(
    tx: Transaction,
    world: World,
    settings: Settings,
    cache: RefusalCache | None,
    same: Mapping[JobId, Decision],
) -> JobDecisions:
    """Decide on each pending job; record new bursts, and hold or release jobs."""
    assert world.lead is not None
    expire_assignments(tx, world.lead, settings.deadlines.release)
    rules = rules_of(cache, settings, world)
    inputs = refusal_inputs(tx, world, settings, rules)
    before = cache or RefusalCache(inputs=inputs)
    jobs = world.lead.jobs
    valid = valid_refusals(cache, same, inputs, world.lead, tx.now)
    still_refused, backlog = take_turns(same, valid, before.backlog, jobs)
    bursts_by_job = tx.bursts_by_job()
    constraints = Constraints(world.identity)

    def place(refused: Mapping[JobId, Decision]) -> tuple[JobTriage, Plan]:
        triage = JobTriage(tx, world, constraints, settings, tx.now)
        triage.policy.begin(rules, before.unforecast)
        triage.sort(bursts_by_job, refused, before.shortfalls)
        demands = _with_backoffs(triage.demands, before.reservation_backoffs, tx.now)
        wanted = PlanRequest(demands=demands, overtaken=before.overtaken)
        return triage, plan_demands(tx, world, settings, constraints, wanted)

    triage, plan = place(still_refused)
    if plan.reservation != before.reservation and still_refused:
        # What was refused on account of the slots that were kept may be had now.
        lasting = lasting_refusals(still_refused, world.lead)
        still_refused, backlog = take_turns(still_refused, lasting, backlog, jobs)
        triage, plan = place(still_refused)
    tx.rules = {d.job: d.preferences.rule for d in triage.demands if d.job is not None}
    _record_plan(tx, plan, world)
    fresh = {**triage.decisions, **triage.downgrade_final(plan.decisions)}
    # Refusals rest on what the plan left, and not on what is given back after it.
    left = refusal_inputs(tx, world, settings, rules)
    shortfalls = update_shortfalls(
        tx, before.shortfalls, fresh, settings, still_refused
    )
    plan_job_holds(tx, world.lead, triage, fresh, settings.intake)
    # Bursts of this plan may have got nodes on which such a job would have waited.
    waits_here = triage.waits_here if inputs.own <= left.own else ().__contains__
    limit = settings.deadlines.reservation
    pending = fresh.keys()
    return JobDecisions(
        left=RefusalCache(
            inputs=left,
            jobs=jobs,
            here=triage.here,
            rules=rules,
            backlog=backlog,
            shortfalls=shortfalls,
            unforecast=triage.policy.still_unforecast(still_refused),
            reservation=plan.reservation,
            overtaken=_overtaken(before, plan, pending),
            reservation_backoffs=update_reservation_backoffs(
                before.reservation_backoffs, plan.reservation, pending, tx.now, limit
            ),
        ),
        helped=bursts_by_job.keys(),
        left_to_flux=frozenset(filter(waits_here, fresh)),
        still_refused=still_refused,
        fresh=fresh,
        unsettled=bool(triage.starting),
        behind=triage.behind or bool(backlog.jobs),
    )


def _overtaken(
    before: RefusalCache, plan: Plan, pending: Set[JobId]
) -> Mapping[JobId, int]:
    """Return how many nodes that pending jobs waited for were given to others."""
    known = {job: n for job, n in before.overtaken.items() if job in pending}
    return {**known, **plan.overtaken}


def _with_backoffs(
    demands: Sequence[Demand], backoffs: Mapping[JobId, JobBackoff], now: float
) -> list[Demand]:
    """Return the demands; those for which no slots are kept now say so."""
    paused = {job for job, backoff in backoffs.items() if now < backoff.until}
    return [
        msgspec.structs.replace(demand, reservation_paused=True)
        if demand.job in paused
        else demand
        for demand in demands
    ]


def plan_demands(
    tx: Transaction,
    world: World,
    settings: Settings,
    constraints: Constraints,
    wanted: PlanRequest,
) -> Plan:
    """Place the demands on what is free and offered now. Changes nothing."""
    assert world.lead is not None
    if world.closing:
        return Plan(
            decisions={d.job: Decision(Reason.DAEMON_STOPPING) for d in wanted.demands}
        )
    catalog = read_catalog(tx, world, settings, tx.now)
    # Where followers could not reach the lead, there is no place for any.
    slots = world.slots if world.identity.endpoint else ()
    free = free_slots(slots, tx.live, world.lead, tx.unread_leases)
    jobs = world.lead.jobs
    budgets = budgets_at(tx, settings, world.userids, tx.now)
    purchases = Purchases(budgets, settings, jobs, tx.now, world.banks)
    purchases.know(tx.bursts, tx.entries)
    usage = Usage(settings.limits, tx.live, jobs, purchases)
    rests = free_rests(slots, tx.live, world.lead, tx.unread_leases)
    isolated = IsolatedPlacement(usage, tx.bursts, unreadable_isolated_record(tx))
    planner = Planner(
        SlotIndex(slots, free, constraints, catalog.providers, rests),
        catalog,
        isolated,
        LiveBursts(
            now=tx.now,
            capacities=burst_capacities(tx, world.lead, settings, tx.now),
            slots=find_leased_slots(slots, tx, world.lead),
            overtaken=wanted.overtaken,
        ),
        settings.plan,
    )
    plan = planner.make(wanted.demands, world.identity.owner, tx.now)
    if not world.identity.endpoint:
        plan = _without_address(plan)
    return plan


def _without_address(plan: Plan) -> Plan:
    """Return the plan with the reason why nothing can join."""
    unreachable = Decision(Reason.NO_ADDRESS)
    decisions = {
        job: unreachable if decision.reason is Reason.NO_SLOTS else decision
        for job, decision in plan.decisions.items()
    }
    return msgspec.structs.replace(plan, decisions=decisions)


def _record_plan(tx: Transaction, plan: Plan, world: World) -> None:
    """Put the plan on record: intents first, then what carries them out."""
    assert world.lead is not None
    jobs = world.lead.jobs
    for proposal in plan.proposals:
        submitted = {job: jobs[job].t_submit for job in proposal.jobs}
        tx.plan_burst(proposal.lease, submitted)
        if proposal.race:
            tx.record(proposal.lease.id, "race", {"note": proposal.race})
    assigned: dict[BurstId, dict[str, float]] = {}
    given = [(job, (burst,)) for job, burst in plan.assignments.items()]
    for job, bursts in [*given, *plan.combined.items()]:
        for burst in bursts:
            assigned.setdefault(burst, {})[format_f58(job)] = jobs[job].t_submit
    for burst, its_jobs in assigned.items():
        tx.record(burst, "assign", {"jobs": its_jobs})
    tx.awaited = plan.awaited
    for ending in sorted(plan.ending):
        drain_for_job(tx, tx.bursts[ending])


def _drop_oldest(tx: Transaction) -> None:
    """Drop the oldest of the bursts that ended and left nothing to undo."""

    def ended(burst: Burst) -> bool:
        # The job of an isolated one is known to have run by its record alone.
        owes = burst.drained or (burst.may_have_run and burst.jobs)
        return burst.state is State.INACTIVE and not owes

    done = [burst for burst in tx.bursts.values() if ended(burst)]
    for burst in sorted(done, key=lambda burst: burst.since)[:-KEPT_ENDED]:
        del tx.bursts[burst.id]
        if burst.id in tx.outputs:
            del tx.outputs[burst.id]
