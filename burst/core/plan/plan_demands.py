# SPDX-License-Identifier: MIT
"""The plan for some demands, by what is on record and was read in this tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from burst.config import Settings
from burst.core.isolated.placement import IsolatedPlacement, unreadable_isolated_record
from burst.core.plan.capacity import lending_bursts
from burst.core.plan.catalog import read_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.leasable import leasable_ranks
from burst.core.plan.limits import Usage, usage_of
from burst.core.plan.never import AllSlots
from burst.core.plan.plan_growth import GrowthContext, with_growths
from burst.core.plan.planner import make_plan
from burst.core.plan.purchases import Purchases
from burst.core.plan.rank_table import RankTable
from burst.core.records import Transaction
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.core.worth.accounts import budgets_at
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason

_NONE: Mapping[JobId, int] = MappingProxyType({})


def plan_demands(
    tx: Transaction,
    world: World,
    settings: Settings,
    demands: Sequence[Demand],
    overtaken: Mapping[JobId, int] = _NONE,
) -> Plan:
    """Place the demands, in the order in which they are served. Changes nothing.

    `overtaken` as of `Plan`, of the tick before.
    """
    assert world.lead is not None
    if world.closing:
        stops = Decision(Reason.DAEMON_STOPPING)
        return Plan(decisions=dict.fromkeys((each.job for each in demands), stops))
    catalog = read_catalog(tx, world, settings, tx.now)
    constraints = Constraints(world.identity)
    # Where followers could not reach the lead, there is no place for any.
    slots = world.slots if world.identity.endpoint else ()
    ranks = leasable_ranks(slots, tx, world.lead)
    usage = current_usage(tx, world, settings)
    context = PlanContext(
        now=tx.now,
        table=RankTable(slots, ranks, catalog.providers, tx.now),
        slots=AllSlots(slots, constraints, catalog.providers),
        catalog=catalog,
        usage=usage,
        live=lending_bursts(tx, world.lead, settings, tx.now),
        settings=settings.plan,
        patience=settings.deadlines.reservation,
        overtaken=overtaken,
        whole_nodes=world.lead.scheduler.whole_nodes,
    )
    unreadable = unreadable_isolated_record(tx)
    isolated = IsolatedPlacement(usage, tx.bursts, unreadable, world.identity)
    plan = make_plan(demands, context, isolated)
    eligible = context.eligible(isolated.facts)
    growing = GrowthContext(tx, world, settings, constraints, eligible, demands)
    plan = with_growths(plan, growing)
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
