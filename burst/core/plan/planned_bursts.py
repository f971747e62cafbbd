# SPDX-License-Identifier: MIT
"""The bursts that a plan makes, and the further jobs that share them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Container, Sequence

import msgspec

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Proposal
from burst.core.plan.fit import NodePool, nodes_needed
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.slot_ranks import RankNeed, SlotRanks
from burst.core.plan.sources import Portion, new_burst
from burst.model.burst import ISOLATED_STEM, BurstId, Lease
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
    def full(self) -> bool:
        """Whether it has no free node and cannot get one."""
        return not self.pool and not (self.slot.free and self.source.nodes < self.most)

    @property
    def name(self) -> BurstId:
        """Its name while the plan is made; unique, as no other burst has its ranks."""
        return BurstId(f"{self.slot.slot.name}/{self.ranks[0]}")

    def grow(self, ranks: list[int]) -> None:
        """Lease further ranks of the slot."""
        self.ranks += ranks
        self.source.nodes = len(self.ranks)
        self.pool.add(ranks, self.slot.slot.shape)

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
        hosts = tuple(lead.hosts[rank] for rank in ranks)
        jobs = tuple(each.job for each in self.demands if each.job is not None)
        content = (lead.owner, self.candidate.key, hosts, jobs, now)
        # Followers have the `[access]` that the lead has when they are made.
        guests = self.candidate.offer.guests and lead.access.allow_guest_user
        lease = msgspec.structs.replace(
            _lease(self.candidate, self.demands[0], now),
            id=BurstId(f"{self.slot.slot.name}-{_digest(content)}"),
            slot=self.slot.slot.name,
            hosts=hosts,
            ranks=ranks,
            shape=self.slot.slot.shape,
            userids=tuple(sorted(self.source.userids)),
            requester=self.source.requester,
            guests=guests,
            standing=self.demands[0].standing,
        )
        return Proposal(lease, jobs)


def _lease(candidate: ProviderOffer, demand: Demand, now: float) -> Lease:
    """Return the part of a lease that does not depend on ranks, and on other jobs."""
    offer = candidate.offer
    return Lease(
        id=BurstId(""),
        provider=candidate.provider,
        offer=offer.name,
        slot="",
        hosts=(),
        ranks=(),
        shape=offer.shape,
        userids=() if demand.userid is None else (demand.userid,),
        created=now,
        price=offer.price,
        fee=offer.fee,
        priced_by=candidate.priced_by,
        spot=offer.spot,
        end=candidate.lease_end,
        place=candidate.place,
        tag=demand.tag,
        image=demand.image,
    )


def _digest(content: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:6]


class PlannedBursts:
    """The bursts of one plan while it is made; they grow as jobs are added.

    Isolated ones have one demand, and take no rank slot. They count against the limits.
    """

    def __init__(self, context: PlanContext) -> None:
        self._made: list[PlannedBurst] = []
        self._isolated: list[tuple[ProviderOffer, Demand, int]] = []
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
            self._made.append(planned)
            self._growing.append(planned)
            until = context.until(candidate, demand)
            planned.until = until
            context.table.take(slot, ranks, until)
            use = FurtherUse.new(candidate.key, (len(ranks),), demand.userid, until)
            context.usage.begin(planned.name, use)
            self._last[key] = planned
        sizes = tuple(len(ranks) for _, ranks in pieces)
        context.catalog.failures.begin(candidate, sizes)

    def isolate(self, candidate: ProviderOffer, demand: Demand, nodes: int) -> None:
        """Make an isolated burst of so many nodes of an offer for a demand."""
        context, until = self._context, self._context.until(candidate, demand)
        use = FurtherUse.new(candidate.key, (nodes,), demand.userid, until)
        context.usage.begin(BurstId(f"isolated/{len(self._isolated)}"), use)
        context.usage.purchases.buy(candidate, demand, nodes)
        context.catalog.failures.begin(candidate, (nodes,))
        self._isolated.append((candidate, demand, nodes))

    def propose(self, used_ids: Container[BurstId]) -> list[Proposal]:
        """Return the bursts to be made; `used_ids` are ids that other bursts have."""
        lead, now = self._context.identity, self._context.now
        proposals = [each.propose(lead, now) for each in self._made]
        made: set[BurstId] = set()
        for candidate, demand, nodes in self._isolated:
            content = (lead.owner, candidate.key, nodes, demand.isolated, now)
            ids = (
                BurstId(f"{ISOLATED_STEM}-{_digest((*content, number))}")
                for number in itertools.count()
            )
            name = next(id_ for id_ in ids if id_ not in made and id_ not in used_ids)
            made.add(name)
            lease = msgspec.structs.replace(
                _lease(candidate, demand, now),
                id=name,
                hosts=tuple(f"{name}-{index}" for index in range(nodes)),
                isolated=demand.isolated,
            )
            jobs = () if demand.job is None else (demand.job,)
            proposals.append(Proposal(lease, jobs))
        return proposals

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
        use = FurtherUse.joined(demand.userid, joined, (planned.name,), until)
        if context.why_not(demand, planned.source, Portion(use)):
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
            planned.candidate, demand, planned.source.nodes, planned.source.bought
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
        before = planned.source.nodes
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
        if context.why_not(demand, planned.source, share):
            return None
        planned.grow(ranks)
        context.table.take(slot, ranks, until)
        context.catalog.failures.begin(offer, (size,))
        return use
