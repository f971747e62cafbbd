# SPDX-License-Identifier: MIT
"""One turn of the engine as a function: record what happened, decide what to do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.burst_actions import advance, make_way
from burst.core.isolated.placement import Apart, lost_record
from burst.core.placement import shortfall
from burst.core.placement.capacity import find_room
from burst.core.placement.leased_slots import Live, taken_slots
from burst.core.placement.limits import Usage
from burst.core.placement.offers import Market, being_asked, lease_end, open_market
from burst.core.placement.plan import Demand, Plan
from burst.core.placement.planner import Planner
from burst.core.placement.refusal_cache import (
    Judged,
    Standing,
    grounds_of,
    lasting_ones,
    stand,
    still_standing,
    unchanged,
)
from burst.core.placement.reservation import follow
from burst.core.placement.run_time import lasting
from burst.core.placement.slot_index import Ground
from burst.core.placement.slots import free_slots
from burst.core.select.claims import expire
from burst.core.select.constraints import Constraints
from burst.core.select.job_holds import settle
from burst.core.select.triage import Intake
from burst.core.sync import sync
from burst.core.transaction import Action, Draft
from burst.core.world import Books, World
from burst.model.burst import Burst, BurstId, State
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

# So many ended bursts stay on the books, for `burst status --all` and `explain`.
KEPT_ENDED = 100


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick came to. The books are to be stored before any action is taken."""

    books: Books
    events: tuple[tuple[BurstId, Event], ...]
    actions: tuple[Action, ...]
    decisions: Mapping[JobId, Decision]
    """On every pending burstable job; empty where the lead could not be read."""
    standing: Standing | None = None
    """For the next tick."""
    unsettled: bool = False
    """Whether some job may be starting, so that the lead is to be read again soon."""
    behind: bool = False
    """Whether some jobs are left for the next tick, which is to be soon."""


def reconcile(
    books: Books,
    world: World,
    settings: Settings,
    now: float,
    standing: Standing | None = None,
) -> Decisions:
    """Sync, then step. Pure: equal arguments give equal decisions.

    `standing` is that of the tick before. Its refusals spare work and change nothing;
    without it, what is known of jobs that lack a part of their nodes begins anew.
    """
    draft = Draft(books, now)
    same = unchanged(standing, books, world.lead)
    sync(draft, world, settings.limits, same)
    judged: Judged | None = None
    if world.lead is not None:
        judged = _judge(draft, world, settings, standing, same)
    for burst in list(draft.bursts.values()):
        # What began in this very tick has its provider asked already.
        if burst.id in books.bursts and not burst.quarantined:
            advance(draft, burst, world, settings)
    _forget(draft)
    after = draft.books()
    verdicts: Mapping[JobId, Decision] = {}
    if judged is not None:
        verdicts = {**judged.stands, **judged.fresh}
        standing = stand(judged, after)
    return Decisions(
        books=after,
        events=tuple(draft.events),
        actions=tuple(draft.actions),
        decisions=verdicts,
        standing=standing,
        unsettled=judged is not None and judged.unsettled,
        behind=judged is not None and judged.behind,
    )


def _judge(
    draft: Draft,
    world: World,
    settings: Settings,
    standing: Standing | None,
    same: Mapping[JobId, Decision],
) -> Judged:
    """Find a verdict on each pending job, and write what it asks for."""
    assert world.lead is not None
    expire(draft, world.lead, settings.deadlines.release)
    grounds = grounds_of(draft, world, settings)
    stands = still_standing(standing, same, grounds, world.lead, draft.now)
    before = standing or Standing(grounds=grounds)
    bursts_of = draft.bursts_of()
    intake, plan = _place(draft, world, settings, before, stands)
    if plan.reserved != before.reserved and stands:
        # What was refused on account of the slots that were kept may be had now.
        stands = lasting_ones(stands, world.lead)
        intake, plan = _place(draft, world, settings, before, stands)
    _adopt(draft, plan, world)
    fresh = {**intake.decisions, **intake.temper(plan.decisions)}
    # Refusals rest on what the plan left, and not on what is given back after it.
    left = grounds_of(draft, world, settings)
    shortfalls = shortfall.follow(draft, before.shortfalls, fresh, settings, stands)
    settle(draft, world.lead, intake, fresh, settings.intake)
    limit = settings.deadlines.reservation
    pending = fresh.keys()
    return Judged(
        grounds=left,
        jobs=world.lead.jobs,
        here=intake.here,
        helped=bursts_of.keys(),
        stands=stands,
        fresh=fresh,
        shortfalls=shortfalls,
        reserved=plan.reserved,
        keepings=follow(before.keepings, plan.reserved, pending, draft.now, limit),
        unsettled=bool(intake.starting),
        behind=intake.behind,
    )


def _place(
    draft: Draft,
    world: World,
    settings: Settings,
    before: Standing,
    stands: Mapping[JobId, Decision],
) -> tuple[Intake, Plan]:
    """Sort the jobs on which no verdict stands, and plan for them. Changes nothing."""
    constraints = Constraints(world.identity)
    intake = Intake(draft.books(), world, constraints, settings, draft.now)
    intake.sort(draft.bursts_of(), stands, before.shortfalls)
    passed = {job for job, kept in before.keepings.items() if draft.now < kept.until}
    demands = [
        msgspec.structs.replace(demand, passed=True) if demand.job in passed else demand
        for demand in intake.demands
    ]
    plan = make_plan(draft, world, settings, constraints, demands)
    return intake, plan


def make_plan(
    draft: Draft,
    world: World,
    settings: Settings,
    constraints: Constraints,
    demands: list[Demand],
) -> Plan:
    """Place the demands on what is free and offered now. Changes nothing."""
    assert world.lead is not None
    if world.closing:
        return Plan(
            decisions={d.job: Decision(Reason.DAEMON_STOPPING) for d in demands}
        )
    books = draft.books()
    offers = {name: view.offers for name, view in world.providers.items()}
    market = open_market(offers, books.health, draft.now, being_asked(books.live))
    lasts = lasting(market, settings.deadlines, draft.now)
    market = msgspec.structs.replace(market, lasting=lasts)
    # Where followers could not reach the lead, there is no place for any.
    slots = world.slots if world.identity.endpoint else ()
    free = free_slots(slots, books.live, world.lead, books.unread_leases)
    usage = Usage(settings.limits, books.live, world.lead.jobs)
    apart = Apart(usage, books.bursts, lost_record(books))
    planner = Planner(
        Ground(slots, free, constraints, market.providers),
        market,
        apart,
        Live(
            now=draft.now,
            rooms=find_room(books, world.lead, settings, draft.now),
            slots=taken_slots(slots, books, world.lead),
        ),
        settings.plan,
    )
    plan = planner.make(demands, world.identity.owner, draft.now)
    if not world.identity.endpoint:
        plan = _nowhere(plan)
    return _limit(plan, market, settings.deadlines.lease, draft.now)


def _nowhere(plan: Plan) -> Plan:
    """Return the plan with the reason why nothing can join."""
    nowhere = Decision(Reason.NO_ADDRESS)
    verdicts = {
        job: nowhere if verdict.reason is Reason.NO_SLOTS else verdict
        for job, verdict in plan.decisions.items()
    }
    return msgspec.structs.replace(plan, decisions=verdicts)


def _limit(plan: Plan, market: Market, longest: float, now: float) -> Plan:
    """Return the plan with the end of each lease, by settings and offer."""
    replace = msgspec.structs.replace
    ends = {
        (priced.provider, priced.offer.name): lease_end(priced.offer, longest, now)
        for priced in market.known
    }
    leases = [
        replace(each.lease, end=ends[each.lease.provider, each.lease.offer])
        for each in plan.proposals
    ]
    proposals = tuple(
        replace(each, lease=lease)
        for each, lease in zip(plan.proposals, leases, strict=True)
    )
    return replace(plan, proposals=proposals)


def _adopt(draft: Draft, plan: Plan, world: World) -> None:
    """Put the plan on the books: intents first, then what carries them out."""
    assert world.lead is not None
    jobs = world.lead.jobs
    for proposal in plan.proposals:
        place = world.places.get(proposal.lease.provider, "")
        lease = msgspec.structs.replace(proposal.lease, place=place)
        submitted = {job: jobs[job].t_submit for job in proposal.jobs}
        draft.begin(lease, submitted)
    assigned: dict[BurstId, dict[str, float]] = {}
    for job, burst in plan.assignments.items():
        assigned.setdefault(burst, {})[format_f58(job)] = jobs[job].t_submit
    for burst, its_jobs in assigned.items():
        draft.note(burst, "assign", {"jobs": its_jobs})
    for ending in sorted(plan.ending):
        make_way(draft, draft.bursts[ending])


def _forget(draft: Draft) -> None:
    """Drop the oldest of the bursts that ended and left nothing to undo."""

    def ended(burst: Burst) -> bool:
        # The job of an isolated one is known to have run by its record alone.
        owes = burst.drained or (burst.spent and burst.jobs)
        return burst.state is State.INACTIVE and not owes

    done = [burst for burst in draft.bursts.values() if ended(burst)]
    for burst in sorted(done, key=lambda burst: burst.since)[:-KEPT_ENDED]:
        del draft.bursts[burst.id]
        if burst.id in draft.outputs:
            del draft.outputs[burst.id]
