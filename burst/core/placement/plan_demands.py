# SPDX-License-Identifier: MIT
"""The plan for some demands, by what is on record and was read in this tick."""

from __future__ import annotations

import msgspec

from burst.config import Settings
from burst.core.isolated.placement import IsolatedPlacement, unreadable_isolated_record
from burst.core.placement.capacity import burst_capacities
from burst.core.placement.catalog import read_catalog
from burst.core.placement.free_ranks import free_ranks
from burst.core.placement.leased_slots import LiveBursts, find_leased_slots
from burst.core.placement.limits import Usage
from burst.core.placement.plan import Plan, PlanRequest
from burst.core.placement.plan_growth import GrowthGrounds, with_growths
from burst.core.placement.planner import Planner
from burst.core.placement.purchases import Purchases
from burst.core.placement.slot_index import SlotIndex
from burst.core.records import Transaction
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.core.worth.accounts import budgets_at
from burst.model.decision import Decision
from burst.model.reason import Reason


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
    free = free_ranks(slots, tx.live, world.lead, tx.unread_leases)
    usage = current_usage(tx, world, settings)
    isolated = IsolatedPlacement(
        usage, tx.bursts, unreadable_isolated_record(tx), world.identity
    )
    planner = Planner(
        SlotIndex(slots, free, constraints, catalog.providers),
        catalog,
        isolated,
        LiveBursts(
            now=tx.now,
            capacities=burst_capacities(tx, world.lead, settings, tx.now),
            slots=find_leased_slots(slots, tx, world.lead),
            whole_nodes=world.lead.scheduler.whole_nodes,
            overtaken=wanted.overtaken,
        ),
        settings.plan,
    )
    plan = planner.make(wanted.demands, world.identity, tx.now)
    grounds = GrowthGrounds(tx, world, settings, constraints, usage.purchases)
    plan = with_growths(plan, grounds)
    if not world.identity.endpoint:
        plan = _without_address(plan)
    return plan


def current_usage(tx: Transaction, world: World, settings: Settings) -> Usage:
    """Return what live bursts use of limits and budgets."""
    assert world.lead is not None
    jobs = world.lead.jobs
    budgets = budgets_at(tx, settings, world.userids, tx.now)
    purchases = Purchases(budgets, settings, jobs, tx.now, world.banks)
    purchases.know(tx.bursts, tx.entries)
    totals = {
        f"{name}/{offer.name}": offer.total
        for name, view in world.providers.items()
        for offer in view.offers or ()
    }
    return Usage(settings.limits, tx.live, jobs, purchases, totals)


def _without_address(plan: Plan) -> Plan:
    """Return the plan with the reason why nothing can join."""
    unreachable = Decision(Reason.NO_ADDRESS)
    decisions = {
        job: unreachable if decision.reason is Reason.NO_SLOTS else decision
        for job, decision in plan.decisions.items()
    }
    return msgspec.structs.replace(plan, decisions=decisions)
