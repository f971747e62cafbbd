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

from collections import Counter
from collections.abc import Sequence

import msgspec

from burst.config import DeadlineSettings, PlanSettings
from burst.core.plan.capacity import source_of
from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Growth, Plan, Proposal
from burst.core.plan.leasable import free_ranks
from burst.core.plan.limits import FurtherUse
from burst.core.plan.slots import RankSlot, readable_slots
from burst.core.plan.sources import Portion, Source
from burst.core.records import RecordsView, Transaction, unread_leases
from burst.core.world import World
from burst.model.burst import Burst, Lease, State
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity, LeadView
from burst.model.reason import Reason


def with_growths(
    plan: Plan, context: PlanContext, demands: Sequence[Demand], tx: Transaction
) -> Plan:
    """Return the plan with growths in place of the bursts that they save.

    `demands` and `context` are those that the plan was made for and with.
    """
    if not context.settings.resize or not tx.world.resizable:
        return plan
    finder = _GrowthFinder(plan, context, demands, tx)
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


def may_be_resized(burst: Burst, world: World, settings: PlanSettings) -> bool:
    """Tell whether a burst may grow and shrink without being asked to.

    Whoever requested a burst with a tag decides on its size.
    """
    return (
        settings.resize
        and burst.lease.provider in world.resizable
        and burst.state is State.ONLINE
        and burst.lease.isolated is None
        and burst.lease.tag is None
        and burst.resize is None
        and not burst.quarantined
        and not world.rents_nothing
    )


class _GrowthFinder:
    """Finds the new bursts of one plan that a growth can replace."""

    def __init__(
        self,
        plan: Plan,
        context: PlanContext,
        demands: Sequence[Demand],
        tx: Transaction,
    ) -> None:
        self.found: list[Growth] = []
        self._plan, self._context = plan, context
        self._tx, self._world, self._lead = tx, tx.world, tx.lead
        # Worth and price were judged for the new burst, which costs as much.
        self._demands = {
            each.job: msgspec.structs.replace(each, live_worth=None) for each in demands
        }
        # How many new bursts each job gets: if several, none of them is replaced.
        self._count = Counter(job for each in plan.proposals for job in each.jobs)
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
                purchases = self._context.usage.purchases
                if more is not None and purchases.grow(burst.id, len(more)):
                    self._taken.difference_update(proposal.lease.ranks)
                    self._taken.update(more)
                    self.found.append(Growth(burst.id, more, job))
                    return self.found[-1]
        return None

    def _bursts_of(self, job: JobId) -> list[Burst]:
        """Return the live bursts of which the job has nodes."""
        given = self._plan.assignments.get(job, ())
        return [b for b in self._tx.live if b.id in given or job in b.jobs]

    def _may_grow(self, burst: Burst, proposal: Proposal, demand: Demand) -> bool:
        lease, new, context = burst.lease, proposal.lease, self._context
        # The place is the same, too: elsewhere the burst would be quarantined.
        same = (lease.provider, lease.offer, lease.price, lease.shape)
        if same != (new.provider, new.offer, new.price, new.shape):
            return False
        may = may_be_resized(burst, self._world, context.settings)
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
        source = growing(burst, context.catalog, self._world.deadlines, context.now)
        portion = growth_portion(burst, new.nodes, charged=False)
        return context.why_not(demand, source, portion) is None

    def _ranks_for(
        self, burst: Burst, proposal: Proposal, job: JobView
    ) -> list[int] | None:
        """Return the ranks by which a burst may grow; None if there are too few."""
        free = free_above(burst, self._world.slots, self._tx, self._lead)
        assert job.request is not None
        admitted = self._context.constraints.admitted_to(job.request)
        taken = self._taken.difference(proposal.lease.ranks) | self._promised
        ranks = sorted((free if admitted is None else free & admitted) - taken)
        need = proposal.lease.nodes
        return ranks[:need] if len(ranks) >= need else None


def free_above(
    burst: Burst, slots: Sequence[RankSlot], records: RecordsView, view: LeadView
) -> frozenset[int]:
    """Return the free ranks of a burst's slot above its last one.

    They are free as for a new burst: a slot whose hosts join through a gateway has
    none, as it is leased as a whole.
    """
    ranks = frozenset(burst.lease.ranks)
    # As slots are declared now: it has to have all ranks of the burst.
    slot = next((slot for slot in slots if ranks and ranks.issubset(slot.ranks)), None)
    if slot is None:
        return frozenset()
    known = readable_slots([slot], unread_leases(records))
    free = free_ranks(known, records.live, view)
    last = max(burst.lease.ranks)
    return frozenset(rank for rank in free if rank > last)


def with_ranks(lease: Lease, more: Sequence[int], identity: LeadIdentity) -> Lease:
    """Return the lease of a burst that has further ranks, too."""
    hosts = (*lease.hosts, *(identity.hosts[rank] for rank in more))
    return msgspec.structs.replace(lease, hosts=hosts, ranks=(*lease.ranks, *more))


def growing(
    burst: Burst, catalog: OfferCatalog, deadlines: DeadlineSettings, now: float
) -> Source:
    """Return the source of further nodes of a live burst, by its offer as it is now."""
    source = source_of(burst, deadlines, now)
    same = (each for each in catalog.known if each.key == source.key)
    source.candidate = next(same, None)
    return source


def growth_portion(burst: Burst, more: int, *, charged: bool) -> Portion:
    """Return the portion of a source that `more` further nodes of a burst are.

    With `charged` false, limits count these nodes already.
    """
    lease = burst.lease
    use = FurtherUse(
        offer=lease.key,
        sizes=(lease.nodes + more,),
        nodes=more if charged else 0,
        charged=dict.fromkeys(lease.userids if charged else (), more),
    )
    return Portion(use, ((lease.slot, more),))
