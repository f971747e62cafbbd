# SPDX-License-Identifier: MIT
"""Makes the plan for some demands from the records and from what was read, and records
the bursts of a plan. It tells what bursts use of the limits, also those whose records
cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.money.ledger import Entry, Payer
from burst.core.money.life import payer_of
from burst.core.plan.capacity import lending_bursts
from burst.core.plan.catalog import read_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Plan, Proposal
from burst.core.plan.growth import with_growths
from burst.core.plan.leasable import LeasableRanks, leasable_ranks
from burst.core.plan.limits import FurtherUse, Usage, usage_of
from burst.core.plan.planner import make_plan
from burst.core.plan.purchases import Purchases
from burst.core.plan.rank_table import RankTable
from burst.core.records import (
    RecordsView,
    Transaction,
    unread_bursts,
    unreadable_isolated_record,
)
from burst.core.world import World
from burst.model.banks import Banks
from burst.model.burst import BurstId, Lease
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason


def plan_demands(
    tx: Transaction, demands: Sequence[Demand], context: PlanContext | None = None
) -> Plan:
    """Place the demands, in the order in which they are served.

    `context` is what `plan_context` returns, if that is known. Only it is changed.
    """
    if tx.world.rents_nothing:
        stops = Decision(Reason.DAEMON_STOPPING)
        return Plan(decisions=dict.fromkeys((each.job for each in demands), stops))
    context = context or plan_context(tx, tx.world, tx.settings, tx.now)
    plan = make_plan(demands, context, tx.bursts)
    return with_growths(plan, context, demands, tx)


def record_proposal(tx: Transaction, proposal: Proposal) -> None:
    """Record a burst that is to be made, and have its provider make it."""
    jobs = [tx.lead.jobs[job] for job in proposal.jobs]
    lease = with_accounts(proposal.lease, jobs, tx.world.banks)
    tx.plan_burst(lease, {job.id: job.t_submit for job in jobs})


def with_accounts(lease: Lease, jobs: Sequence[JobView], banks: Banks) -> Lease:
    """Return the lease with the banks that pay for these jobs, and their queues.

    A site charges for a burst by these.
    """
    paying = {banks.bank_of(job) for job in jobs} - {""}
    queues = {job.queue for job in jobs} - {""}
    return msgspec.structs.replace(
        lease, banks=tuple(sorted(paying)), queues=tuple(sorted(queues))
    )


def plan_context(
    records: RecordsView,
    world: World,
    settings: Settings,
    now: float,
    ranks: LeasableRanks | None = None,
) -> PlanContext:
    """Return the inputs of a plan; `ranks` are those of all slots, if known."""
    assert world.lead is not None
    ranks = ranks or leasable_ranks(world.slots, records, world.lead)
    catalog = read_catalog(records, world, settings, now)
    # Without an endpoint followers could not reach the lead, so no slot counts.
    slots = world.slots if world.identity.endpoint else ()
    return PlanContext(
        now=now,
        identity=world.identity,
        catalog=catalog,
        table=RankTable(slots, ranks, catalog.providers),
        usage=_usage(records, world, settings, now),
        live=lending_bursts(records, world.lead, settings, now),
        settings=settings.plan,
        unreadable=unreadable_isolated_record(records),
        whole_nodes=world.lead.scheduler.whole_nodes,
    )


def _usage(records: RecordsView, world: World, settings: Settings, now: float) -> Usage:
    """Return what bursts use of limits and budgets that may cost something."""
    lead = world.lead
    assert lead is not None

    def payer(job: JobId) -> Payer | None:
        view = lead.jobs.get(job)
        return None if view is None else payer_of(view, world.banks)

    purchases = Purchases(records, settings, world.userids, payer, now)
    totals = {
        f"{name}/{offer.name}": offer.total
        for name, view in world.providers.items()
        for offer in view.offers or ()
    }
    live = {burst.id: usage_of(burst, lead) for burst in records.live}
    there = {**unread_use(records, world), **live}
    return Usage(settings.limits, there, purchases, totals)


def unread_use(records: RecordsView, world: World) -> Mapping[BurstId, FurtherUse]:
    """Return what each burst uses whose record cannot be read, as far as is known.

    Its nodes are paid for until a person has it taken down. The entry of its money
    tells their number, and for whom they are. A burst without an entry has ended, or
    that cannot be read either; then the followers count that a provider shows.
    """
    return {
        name: use
        for name in unread_bursts(records)
        if (use := _use_of(name, records, world)) is not None
    }


def unread_entries(records: RecordsView) -> list[Entry]:
    """Return the entries of these bursts, as far as they can be read."""
    entries = map(records.entries.get, unread_bursts(records))
    return [entry for entry in entries if entry is not None]


def _use_of(name: BurstId, records: RecordsView, world: World) -> FurtherUse | None:
    entry = records.entries.get(name)
    if entry is not None:
        users = {payer.userid for payer in entry.payers if payer.userid is not None}
        return FurtherUse(
            offer=f"{entry.provider}/{entry.offer}",
            nodes=entry.nodes,
            bursts=1,
            charged=dict.fromkeys(users, entry.nodes),
        )
    for provider, view in world.providers.items():
        if name in view.statuses:
            nodes = len(view.statuses[name].followers)
            return FurtherUse(offer=f"{provider}/", nodes=nodes, bursts=1)
    return None
