# SPDX-License-Identifier: MIT
"""The bursts that a plan makes, and the further jobs that share them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Proposal
from burst.core.plan.fit import NodePool, nodes_needed
from burst.core.plan.limits import FurtherUse, Joined
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.slot_ranks import RankNeed, SlotRanks
from burst.core.plan.sources import Portion, new_burst
from burst.model.burst import BurstId, Lease
from burst.model.lead import LeadIdentity

# How many bursts with room are looked at before a job gets one of its own.
_LOOK_BACK = 64
DemandKey = int
"""A key that demands share if a plan has the same answer for them."""
Piece = tuple[SlotRanks, list[int]]
"""Ranks of one slot."""


class PlannedBurst:
    """A burst of the plan while it is made; grows as jobs are added."""

    def __init__(
        self, candidate: ProviderOffer, slot: SlotRanks, whole_nodes: bool = False
    ) -> None:
        self.candidate = candidate
        self.slot = slot
        self.most = candidate.offer.max_nodes
        self.ranks: list[int] = []
        self.until = 0.0
        """When its jobs have ended, by their time limits."""
        self.source = new_burst(candidate)
        self.demands: list[Demand] = []
        """The demands that it is made for."""
        self.pool = NodePool({}, {}, whole_nodes=whole_nodes)

    @property
    def nodes(self) -> int:
        """How many it has in this plan."""
        return len(self.ranks)

    @property
    def full(self) -> bool:
        """Whether it has no free node and cannot get one."""
        return not self.pool and not (self.slot.free and self.nodes < self.most)

    @property
    def name(self) -> BurstId:
        """Its name while the plan is made; unique, as no other burst has its ranks."""
        return BurstId(f"{self.slot.slot.name}/{self.ranks[0]}")

    def grow(self, ranks: list[int]) -> None:
        """Lease further ranks of the slot."""
        self.ranks += ranks
        self.source.nodes = self.nodes
        for rank in ranks:
            self.pool.add(rank, self.slot.slot.shape)

    def add(self, demand: Demand) -> None:
        """Note a demand that it is made for."""
        self.demands.append(demand)
        self.source.tag = demand.tag
        if demand.job is None:
            self.source.requester = demand.userid
        if demand.userid is not None:
            self.source.userids |= {demand.userid}

    def propose(self, lead: LeadIdentity, now: float) -> Proposal:
        """Return the burst to be made; its id ends in a hash of what the burst is."""
        ranks = tuple(sorted(self.ranks))
        offer = self.candidate.offer
        hosts = tuple(lead.hosts[rank] for rank in ranks)
        jobs = tuple(each.job for each in self.demands if each.job is not None)
        content = (lead.owner, self.candidate.key, hosts, jobs, now)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:6]
        lease = Lease(
            id=BurstId(f"{self.slot.slot.name}-{digest}"),
            provider=self.candidate.provider,
            offer=offer.name,
            slot=self.slot.slot.name,
            hosts=hosts,
            ranks=ranks,
            shape=self.slot.slot.shape,
            userids=tuple(sorted(self.source.userids)),
            requester=self.source.requester,
            created=now,
            price=offer.price,
            fee=offer.fee,
            priced_by=self.candidate.priced_by,
            # Followers have the `[access]` that the lead has when they are made.
            guests=offer.guests and lead.access.allow_guest_user,
            spot=offer.spot,
            end=self.candidate.lease_end,
            place=self.candidate.place,
            tag=self.source.tag,
            image=self.demands[0].image,
            standing=self.demands[0].standing,
        )
        return Proposal(lease, jobs)


class PlannedBursts:
    """The bursts of one plan while it is made; they grow as jobs are added."""

    def __init__(self, context: PlanContext) -> None:
        self.made: list[PlannedBurst] = []
        self._growing: list[PlannedBurst] = []
        self._last: dict[DemandKey, PlannedBurst] = {}
        """The burst that the last demand with this key got."""
        self._context = context

    def open(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        key: DemandKey,
        pieces: Sequence[Piece],
    ) -> None:
        """Make a burst for a demand on each of these pieces, which are taken for it."""
        context = self._context
        for slot, ranks in pieces:
            planned = PlannedBurst(candidate, slot, context.whole_nodes)
            planned.grow(ranks)
            self._buy(planned, demand)
            planned.add(demand)
            # A single burst is known to hold the job. Of several, which do not hold it
            # by themselves, the job takes all nodes.
            if not planned.pool.take(demand.request):
                planned.most, planned.pool = 0, NodePool({}, {})
            self.made.append(planned)
            self._growing.append(planned)
            until = context.until(candidate, demand)
            planned.until = until
            context.table.take(slot, ranks, until)
            use = FurtherUse.new(candidate.key, (planned.nodes,), demand.userid, until)
            context.usage.begin(planned.name, use)
            self._last[key] = planned
        sizes = tuple(len(ranks) for _, ranks in pieces)
        context.eligible.failures.begin(candidate, sizes)

    def join(self, demand: Demand, key: DemandKey) -> bool:
        """Give the job to a burst of this plan, which may grow for it."""
        if not self._context.settings.share:
            return False
        last = self._last.get(key)
        if last and self._add(last, demand):
            return True
        # What is full stays full while a plan is made.
        self._growing = [planned for planned in self._growing if not planned.full]
        for planned in self._growing[: -_LOOK_BACK - 1 : -1]:
            if planned is not last and self._add(planned, demand):
                self._last[key] = planned
                return True
        return False

    def _add(self, planned: PlannedBurst, demand: Demand) -> bool:
        """Give a job to a burst of this plan; tell whether it got it."""
        context = self._context
        # It has all its ranks for as long as any of its jobs.
        until = max(planned.until, context.until(planned.candidate, demand))
        promised = context.table.promised_from(planned.ranks)
        if until > min(promised, context.usage.due(planned.name)):
            return False
        joined = planned.source.joined_by(demand)
        use = FurtherUse.joined(demand.userid, Joined(joined, (planned.name,)), until)
        if context.eligible.why_not(demand, planned.source, Portion(use)):
            return False
        admitted = context.admitted(demand)
        if not planned.pool.take(demand.request, admitted):
            further = self._grow(planned, demand, joined, until)
            if further is None:
                return False
            use = further
            planned.pool.take(demand.request, admitted)
        self._buy(planned, demand)
        planned.add(demand)
        context.usage.join(planned.name, use)
        planned.until = until
        context.table.prolong(planned.ranks, until)
        return True

    def _buy(self, planned: PlannedBurst, demand: Demand) -> None:
        """Count what a burst of this plan costs with a demand that it gets."""
        planned.source.bought = self._context.usage.purchases.buy(
            planned.candidate, demand, planned.nodes, planned.source.bought
        )

    def _grow(
        self, planned: PlannedBurst, demand: Demand, extra: int, until: float
    ) -> FurtherUse | None:
        """Make a burst of this plan grow for a job; return that use, None if it cannot.

        `extra` is how many of its nodes newly count against the job's user, `until`
        when all its jobs have ended.
        """
        offer, slot, context = planned.candidate, planned.slot, self._context
        nodes = nodes_needed(demand.request, slot.slot.shape)
        before = planned.nodes
        ranks = slot.usable(RankNeed(until, context.admitted(demand)))[:nodes]
        size = before + nodes
        if not nodes or len(ranks) < nodes or size > planned.most:
            return None
        # The further nodes count against all users that the burst is made for.
        assert demand.userid is not None  # only jobs join, and each job has a user
        charged = dict.fromkeys(planned.source.userids, nodes)
        charged[demand.userid] = nodes + extra
        use = FurtherUse(
            offer=offer.key,
            sizes=(size,),
            nodes=nodes,
            charged=charged,
            until=until,
            staying=(planned.name,),
        )
        share = Portion(use, ((slot.slot.name, size),), before)
        if context.eligible.why_not(demand, planned.source, share):
            return None
        planned.grow(ranks)
        context.table.take(slot, ranks, until)
        context.eligible.failures.begin(offer, (size,))
        return use
