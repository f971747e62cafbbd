# SPDX-License-Identifier: MIT
"""The bursts that give nodes to jobs in a plan: live ones, and those that it makes."""

from __future__ import annotations

import hashlib

import msgspec

from burst.core.plan.demands import Demand, Proposal
from burst.core.plan.fit import NodePool
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.slot_ranks import SlotRanks
from burst.core.plan.sources import Source, new_burst
from burst.model.burst import BurstId, Lease
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity


class LiveBurst(msgspec.Struct, kw_only=True):
    """A live burst that may take further jobs, and what they may still have of it."""

    source: Source
    jobs: frozenset[JobId] = frozenset()
    """The jobs that count on it."""
    idle: bool = False
    """Whether nothing runs on it and no job counts on it."""
    pool: NodePool

    @property
    def burst(self) -> BurstId:
        """Its id."""
        assert self.source.burst is not None
        return self.source.burst


class PlannedBurst:
    """A burst of the plan while it is made; grows as jobs are added."""

    def __init__(
        self, candidate: ProviderOffer, slot: SlotRanks, whole_nodes: bool = False
    ) -> None:
        self.candidate = candidate
        self.slot = slot
        self.most = candidate.offer.max_nodes
        self.ranks: list[int] = []
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
        hosts, offer = self.slot.hosts(ranks), self.candidate.offer
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
