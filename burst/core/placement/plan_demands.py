# SPDX-License-Identifier: MIT
"""The plan for some demands, by what is on record and was read in this tick."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from burst.config import Settings
from burst.core.isolated.placement import IsolatedPlacement, unreadable_isolated_record
from burst.core.placement.capacity import lending_bursts
from burst.core.placement.catalog import read_catalog
from burst.core.placement.ground import Ground
from burst.core.placement.leasable import leasable_ranks
from burst.core.placement.limits import Usage, usage_of
from burst.core.placement.never import AllSlots
from burst.core.placement.plan import Demand, Plan
from burst.core.placement.plan_growth import GrowthGrounds, with_growths
from burst.core.placement.planner import make_plan
from burst.core.placement.purchases import Purchases
from burst.core.placement.rank_table import RankTable
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
    demands: Sequence[Demand],
) -> Plan:
    """Place the demands, in the order in which they are served. Changes nothing."""
    assert world.lead is not None
    if world.closing:
        stops = Decision(Reason.DAEMON_STOPPING)
        return Plan(decisions=dict.fromkeys((each.job for each in demands), stops))
    catalog = read_catalog(tx, world, settings, tx.now)
    # Where followers could not reach the lead, there is no place for any.
    slots = world.slots if world.identity.endpoint else ()
    ranks = leasable_ranks(slots, tx, world.lead)
    usage = current_usage(tx, world, settings)
    ground = Ground(
        now=tx.now,
        table=RankTable(slots, ranks, catalog.providers, tx.now),
        slots=AllSlots(slots, constraints, catalog.providers),
        catalog=catalog,
        usage=usage,
        live=lending_bursts(tx, world.lead, settings, tx.now),
        settings=settings.plan,
        patience=settings.deadlines.reservation,
        whole_nodes=world.lead.scheduler.whole_nodes,
    )
    unreadable = unreadable_isolated_record(tx)
    isolated = IsolatedPlacement(usage, tx.bursts, unreadable, world.identity)
    plan = make_plan(demands, ground, isolated)
    grounds = GrowthGrounds(tx, world, settings, constraints, usage.purchases)
    plan = with_growths(plan, grounds)
    if not world.identity.endpoint:
        plan = _without_address(plan)
    return plan


def current_usage(tx: Transaction, world: World, settings: Settings) -> Usage:
    """Return what live bursts use of limits and budgets."""
    lead = world.lead
    assert lead is not None
    budgets = budgets_at(tx, settings, world.userids, tx.now)
    purchases = Purchases(budgets, settings, lead.jobs, tx.now, world.banks)
    purchases.know(tx.bursts, tx.entries)
    totals = {
        f"{name}/{offer.name}": offer.total
        for name, view in world.providers.items()
        for offer in view.offers or ()
    }
    live = {burst.id: usage_of(burst, lead) for burst in tx.live}
    return Usage(settings.limits, live, purchases, totals)


def _without_address(plan: Plan) -> Plan:
    """Return the plan with the reason why nothing can join."""
    unreachable = Decision(Reason.NO_ADDRESS)
    decisions = {
        job: unreachable if decision.reason is Reason.NO_SLOTS else decision
        for job, decision in plan.decisions.items()
    }
    return msgspec.structs.replace(plan, decisions=decisions)
