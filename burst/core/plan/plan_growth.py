# SPDX-License-Identifier: MIT
"""Makes a live burst grow by the nodes that a job lacks, in place of a further burst.

This is done if the job has nodes of the live burst already, and the further burst would
be of the same offer at the same price. Then both cost the same for each node, a growth
has no fee, and all nodes of the job leave together. Other jobs get a burst of their
own: a burst shrinks only from its end, and they may need their nodes for longer or less
long than the jobs of the live burst.

Budgets have to allow the growth in addition to that further burst: money is reserved
for the whole of the larger burst, also while its further nodes boot. Near a limit the
further burst is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from burst.config import Settings
from burst.core.plan.demands import Demand, Growth, Plan, Proposal
from burst.core.plan.eligible import Eligibility
from burst.core.plan.growth import free_above, growing, growth_portion
from burst.core.records import Transaction
from burst.core.select.constraints import Constraints
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.reason import Reason


class GrowthContext(NamedTuple):
    """The inputs for finding growths."""

    tx: Transaction
    world: World
    settings: Settings
    constraints: Constraints
    eligible: Eligibility
    """It counts all that the plan buys."""
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

    Whoever requested a burst with a tag decides on its size.
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
    """Finds the new bursts of one plan that a growth can replace."""

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
        # How many new bursts each job gets: if several, none of them is replaced.
        self._count: dict[JobId, int] = {}
        for proposal in plan.proposals:
            for job in proposal.jobs:
                self._count[job] = self._count.get(job, 0) + 1
        self._promised = {rank for each in plan.promises for rank in each.ranks}
        self._taken = {
            rank for proposal in plan.proposals for rank in proposal.lease.ranks
        }

    def find(self, proposal: Proposal) -> Growth | None:
        """Return the growth that replaces a burst to be made; None if there is none."""
        if len(proposal.jobs) != 1 or proposal.lease.isolated:
            return None
        (job,) = proposal.jobs
        if self._count[job] != 1:
            return None
        for burst in self._bursts_of(job):
            if self._may_grow(burst, proposal, self._demands[job]):
                more = self._ranks_for(burst, proposal, self._lead.jobs[job])
                purchases = self._context.eligible.usage.purchases
                if more is not None and purchases.grow(burst.id, len(more)):
                    self._taken.difference_update(proposal.lease.ranks)
                    self._taken.update(more)
                    self.found.append(Growth(burst.id, more, job))
                    return self.found[-1]
        return None

    def _bursts_of(self, job: JobId) -> list[Burst]:
        """Return the live bursts of which the job has nodes."""
        given = self._plan.assignments.get(job, ())
        return [b for b in self._context.tx.live if b.id in given or job in b.jobs]

    def _may_grow(self, burst: Burst, proposal: Proposal, demand: Demand) -> bool:
        lease, new, context = burst.lease, proposal.lease, self._context
        # The place is the same, too: elsewhere the burst would be quarantined.
        same = (lease.provider, lease.offer, lease.price, lease.shape)
        if same != (new.provider, new.offer, new.price, new.shape):
            return False
        may = may_be_resized(burst, context.world, context.settings)
        # Jobs of guests would fail on nodes that only run jobs of the owner.
        unlike = lease.guests and not new.guests
        if not may or burst.growth_failed or unlike:
            return False
        if any(growth.burst == burst.id for growth in self.found):
            return False
        # All nodes of a burst count against the users it was made for.
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
    ) -> list[int] | None:
        """Return the ranks by which a burst may grow; None if there are too few."""
        context = self._context
        free = free_above(burst, context.world.slots, context.tx, self._lead)
        assert job.request is not None
        admitted = context.constraints.admitted_to(job.request)
        taken = self._taken.difference(proposal.lease.ranks) | self._promised
        ranks = sorted((free if admitted is None else free & admitted) - taken)
        need = proposal.lease.nodes
        return ranks[:need] if len(ranks) >= need else None
