# SPDX-License-Identifier: MIT
"""Has a live burst grow by what a job lacks, in place of a further burst for it.

Where the job has nodes of the live burst already, and the further one would be of the
same offer, for the same price: then both cost as much for each node, a growth has no
fee, and all nodes of the job leave together. Nodes of other jobs get a burst of their
own, as a burst shrinks from its end only, and theirs may end before the others.

Budgets have to allow the growth beside that further burst: the whole of a larger burst
is reserved for, and for the boot of its further nodes. Near a limit the further burst
is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from burst.config import Settings
from burst.core.plan.demands import Demand, Growth, Plan, Proposal
from burst.core.plan.eligible import Eligibility
from burst.core.plan.growth import FurtherRanks, free_above, growing, growth_portion
from burst.core.records import Transaction
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.reason import Reason


class GrowthContext(NamedTuple):
    """What growths are found by."""

    tx: Transaction
    world: World
    settings: Settings
    constraints: Constraints
    eligible: Eligibility
    """With all that the plan buys counted."""
    demands: Sequence[Demand]


def with_growths(plan: Plan, context: GrowthContext) -> Plan:
    """Return the plan with growths in place of the bursts that they save."""
    if not context.settings.plan.resize or not context.world.resizable:
        return plan
    finder = _GrowthFinder(plan, context)
    kept: list[Proposal] = []
    decisions = dict(plan.decisions)
    for proposal in plan.proposals:
        growth = finder.find(proposal)
        if growth is None:
            kept.append(proposal)
            continue
        facts = {"burst": growth.burst, "nodes": len(growth.ranks)}
        decisions[growth.job] = Decision(Reason.GROWING, facts)
    return msgspec.structs.replace(
        plan, proposals=tuple(kept), growths=tuple(finder.found), decisions=decisions
    )


def may_be_resized(burst: Burst, world: World, settings: Settings) -> bool:
    """Tell whether a burst may grow and shrink without being asked to.

    The size of one with a tag is for whoever requested it to say.
    """
    return (
        settings.plan.resize
        and burst.lease.provider in world.resizable
        and burst.state is State.ONLINE
        and burst.lease.isolated is None
        and burst.lease.tag is None
        and burst.resize is None
        and not burst.quarantined
        and not world.closing
    )


class _GrowthFinder:
    """Finds what of one plan may be had as a growth."""

    def __init__(self, plan: Plan, context: GrowthContext) -> None:
        assert context.world.lead is not None
        self.found: list[Growth] = []
        self._plan, self._context = plan, context
        self._lead: LeadView = context.world.lead
        # Worth and price were judged for the new burst, which costs as much.
        self._demands = {
            each.job: msgspec.structs.replace(each, live_worth=None)
            for each in context.demands
        }
        # A job that gets several new bursts gets them.
        self._count: dict[JobId, int] = {}
        for proposal in plan.proposals:
            for job in proposal.jobs:
                self._count[job] = self._count.get(job, 0) + 1
        self._promised = {rank for each in plan.promises for rank in each.ranks}
        self._taken = {
            rank for proposal in plan.proposals for rank in proposal.lease.ranks
        }

    def find(self, proposal: Proposal) -> Growth | None:
        """Return the growth that does for a burst that is to be made; None if none."""
        if len(proposal.jobs) != 1 or proposal.lease.isolated:
            return None
        (job,) = proposal.jobs
        if self._count[job] != 1:
            return None
        for burst in self._bursts_of(job):
            if self._may_grow(burst, proposal, self._demands[job]):
                more = self._ranks_for(burst, proposal, self._lead.jobs[job])
                purchases = self._context.eligible.usage.purchases
                if more is not None and purchases.grow(burst.id, len(more.ranks)):
                    self._taken.difference_update(proposal.lease.ranks)
                    self._taken.update(more.ranks)
                    self.found.append(Growth(burst.id, more.hosts, more.ranks, job))
                    return self.found[-1]
        return None

    def _bursts_of(self, job: JobId) -> list[Burst]:
        """Return the live bursts of which the job has nodes."""
        given = self._plan.assignments.get(job, ())
        return [b for b in self._context.tx.live if b.id in given or job in b.jobs]

    def _may_grow(self, burst: Burst, proposal: Proposal, demand: Demand) -> bool:
        lease, new, context = burst.lease, proposal.lease, self._context
        same = (lease.provider, lease.offer, lease.price, lease.place, lease.shape)
        if same != (new.provider, new.offer, new.price, new.place, new.shape):
            return False
        may = may_be_resized(burst, context.world, context.settings)
        # Jobs of guests would fail on nodes that are for the owner's only.
        unlike = lease.guests and not new.guests
        if not may or burst.growth_failed or unlike:
            return False
        if any(growth.burst == burst.id for growth in self.found):
            return False
        # All nodes of a burst count against those it was made for.
        users = {
            self._lead.jobs[each].userid for each in burst.jobs & self._lead.jobs.keys()
        }
        if not users.issubset(lease.userids) or set(lease.userids) != set(new.userids):
            return False
        eligible = context.eligible
        source = growing(burst, eligible.catalog, context.settings, context.tx.now)
        portion = growth_portion(burst, new.nodes, charged=False)
        return eligible.why_not(demand, source, portion) is None

    def _ranks_for(
        self, burst: Burst, proposal: Proposal, job: JobView
    ) -> FurtherRanks | None:
        """Return the ranks by which it may grow; None where there are too few."""
        context = self._context
        found = free_above(burst, context.world.slots, context.tx, self._lead)
        assert job.request is not None
        admitted = context.constraints.admitted_to(job.request)
        taken = self._taken.difference(proposal.lease.ranks) | self._promised
        pairs = [
            (host, rank)
            for host, rank in zip(found.hosts, found.ranks, strict=True)
            if rank not in taken and (admitted is None or rank in admitted)
        ][: proposal.lease.nodes]
        if len(pairs) < proposal.lease.nodes:
            return None
        return FurtherRanks(tuple(h for h, _ in pairs), tuple(r for _, r in pairs))
