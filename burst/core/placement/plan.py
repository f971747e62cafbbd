# SPDX-License-Identifier: MIT
"""What the planner speaks of: demands, live bursts with room, and the plan it makes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.core.placement.demand import NodePool
from burst.core.placement.offers import ProviderOffer
from burst.core.placement.slots import RankSlot
from burst.core.worth.budget import Commitment
from burst.core.worth.estimate import StartEstimate, judge, keep_purchase
from burst.model.burst import BurstId, Isolated, Lease, Membership
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst.model.request import BurstPreferences, ResourceRequest


class LiveBurstWorth(msgspec.Struct, frozen=True):
    """What a job's rule asks of live bursts, which would be kept for the job."""

    here: StartEstimate
    run_time: float
    """For how long the job may run, in seconds."""
    asks: float
    now: float

    def pays(self, nodes: int, kept: float) -> bool:
        """Tell whether it pays to keep a burst that is kept so many seconds anyway."""
        purchase = keep_purchase(nodes, self.run_time, kept)
        return judge(self.here, purchase, self.asks, self.now).pays


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be placed: a job, or a request ahead of jobs (then job is None)."""

    job: JobId | None
    userid: int | None
    request: ResourceRequest
    preferences: BurstPreferences = BurstPreferences()
    coming: int = 0
    """Nodes that bursts made for it will bring already."""
    duration: float = 0.0
    """How long the job may run, in seconds; 0 for no limit."""
    reservation_paused: bool = False
    """Whether slots were kept for it for too long, and none are to be now."""
    isolated: Isolated | None = None
    """What an isolated burst would be for; None if there must not be one."""
    not_worth: Decision | None = None
    """Why nothing is bought for it; it may have what is there or bought anyway. None if
    something may be."""
    live_worth: LiveBurstWorth | None = None
    """What a live burst has to be worth to the job; None: it may have any."""
    member: Membership | None = None
    """The ensemble's member on whose bursts the job is to run, or whose the requested
    burst becomes; None for all others."""
    image: str = ""
    """Of the followers of a burst that is made for it; empty for its provider's. Of a
    member's demands alone, so that no other job is given such a burst."""


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one plan is to place."""

    demands: Sequence[Demand]
    """In the order in which they are to be served."""
    overtaken: Mapping[JobId, int] = {}
    """How many nodes of bursts that a job waited for were given to others before."""


class BurstCapacity(msgspec.Struct, kw_only=True):
    """A live burst that may take further jobs, and what of it is not spoken for."""

    burst: BurstId
    userids: frozenset[int]
    """For whose jobs; empty for anybody's."""
    requester: int | None = None
    """Who requested it, and alone may use it, even where users share bursts."""
    member: Membership | None = None
    """Of which ensemble it is; it takes no other jobs than those of the member."""
    guests: bool | None = None
    """Whether jobs of guests can run on its nodes; None where that is not known."""
    provider: str
    price: float = 0.0
    """Per node and hour."""
    nodes: int = 0
    jobs: frozenset[JobId] = frozenset()
    """Those that count on it."""
    idle: bool = False
    """Whether nothing runs on it and no job counts on it."""
    kept: float = 0.0
    """For how many seconds it is kept anyway: by the time limits of its jobs, or while
    it is idle."""
    lasts: float = math.inf
    """For how many seconds jobs can run on it, from now on."""
    pool: NodePool


class Proposal(msgspec.Struct, frozen=True):
    """A burst to be made."""

    lease: Lease
    jobs: tuple[JobId, ...]


class Growth(msgspec.Struct, frozen=True):
    """Further nodes for a live burst."""

    burst: BurstId
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    job: JobId
    """For which it grows."""


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that are kept for a job."""

    job: JobId
    slots: frozenset[str]
    start: float
    """When the last of them is free, by time limits; math.inf if that is unknown."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to make, which live bursts get jobs, and a decision on every demand."""

    proposals: tuple[Proposal, ...] = ()
    growths: tuple[Growth, ...] = ()
    """Of no burst more than one."""
    assignments: Mapping[JobId, BurstId] = {}
    """Jobs that get nodes of one live burst."""
    combined: Mapping[JobId, tuple[BurstId, ...]] = {}
    """Jobs that get idle nodes of these live bursts together, or of these and of bursts
    that are to be made."""
    overtaken: Mapping[JobId, int] = {}
    """Of the job that has the reservation: how many nodes of bursts that it waits for
    were given to others, in this plan and before."""
    ending: frozenset[BurstId] = frozenset()
    """Idle bursts in the way of a job: it would have got them, had their leases not
    ended too soon, or their slots are kept for it."""
    awaited: frozenset[BurstId] = frozenset()
    """Idle bursts that the job with the reservation will have with what is busy now."""
    reservation: Reservation | None = None
    decisions: Mapping[JobId | None, Decision] = {}


class PlannedBurst:
    """A burst of the plan while it is made; grows as jobs are added."""

    def __init__(
        self, candidate: ProviderOffer, slot: RankSlot, whole_nodes: bool = False
    ) -> None:
        self.provider_offer = candidate
        self.slot = slot
        self.most = min(slot.size, candidate.offer.max_nodes)
        self.nodes = 0
        self.jobs: list[JobId] = []
        self.userids: set[int] = set()
        self.requester: int | None = None
        self.member: Membership | None = None
        self.image = ""
        self.demands: list[Demand] = []
        """Those that it gets all nodes for."""
        self.pool = NodePool({}, {}, whole_nodes=whole_nodes)
        self.bought: Commitment | None = None
        """What is reserved for it, where there are budgets."""

    @property
    def full(self) -> bool:
        """Whether it has no free node and cannot get one."""
        return not self.pool and self.nodes >= self.most

    def grow(self, nodes: int) -> None:
        """Lease that many further ranks of the slot."""
        for rank in self.slot.ranks[self.nodes : self.nodes + nodes]:
            self.pool.add(rank, self.slot.shape)
        self.nodes += nodes

    def add(self, demand: Demand) -> None:
        """Note for whom it is made."""
        self.demands.append(demand)
        self.member, self.image = demand.member, demand.image
        if demand.job is not None:
            self.jobs.append(demand.job)
        else:
            self.requester = demand.userid
        if demand.userid is not None:
            self.userids.add(demand.userid)

    def propose(self, lead: LeadIdentity, now: float) -> Proposal:
        """Return it as it is to be made; its name ends in a hash of what it is."""
        hosts = self.slot.hosts[: self.nodes]
        offer = self.provider_offer.offer
        content = (lead.owner, self.provider_offer.key, hosts, self.jobs, now)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:6]
        lease = Lease(
            id=BurstId(f"{self.slot.name}-{digest}"),
            provider=self.provider_offer.provider,
            offer=offer.name,
            slot=self.slot.name,
            hosts=hosts,
            ranks=self.slot.ranks[: self.nodes],
            shape=self.slot.shape,
            userids=tuple(sorted(self.userids)),
            requester=self.requester,
            created=now,
            price=offer.price,
            fee=offer.fee,
            priced_by=self.provider_offer.priced_by,
            # Followers have the `[access]` that the lead has when they are made.
            guests=offer.guests and lead.access.allow_guest_user,
            end=self.provider_offer.lease_end,
            place=self.provider_offer.place,
            member=self.member,
            image=self.image,
        )
        return Proposal(lease, tuple(self.jobs))
