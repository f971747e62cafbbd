# SPDX-License-Identifier: MIT
"""Sources of nodes, with the facts that decide which jobs may use them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.core.plan.demands import Demand
from burst.core.plan.fit import NodePool
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.core.worth.budget import Commitment
from burst.model.burst import BurstId, PriceSource, Tag
from burst.model.jobid import JobId
from burst.model.request import BurstMode


class Source(msgspec.Struct, kw_only=True):
    """Where a job may get nodes from: an offer, or a burst, live or of the plan. It has
    the facts that decide which jobs may.
    """

    provider: str
    offer: str
    """Name of the offer."""
    price: float = 0.0
    """Price for a node and hour."""
    priced_by: PriceSource = "offer"
    guests: bool | None = True
    """Whether jobs of guests can run on the nodes; None where an older record does not
    say it."""
    modes: tuple[BurstMode, ...] = ("joined",)
    spot: bool = False
    """Whether the cloud may take the nodes back."""
    lasts: float
    """For how many seconds jobs can run on it."""
    candidate: ProviderOffer | None = None
    """The offer by which its nodes are bought; None for a live burst that only lends
    what it has, or whose offer is gone."""
    isolated: bool = False
    """Whether a burst of it is isolated."""
    burst: BurstId | None = None
    """The live burst that it is; None for an offer and for a burst of the plan."""
    nodes: int = 0
    """How many nodes the burst has; 0 for an offer."""
    stays: float = 0.0
    """For how many seconds a live burst is kept anyway: by the time limits of its jobs,
    or while it is idle."""
    userids: frozenset[int] = frozenset()
    """The users for whose jobs it is; empty for the jobs of any user."""
    requester: int | None = None
    """The user who requested it and alone may use it, even where users share bursts;
    None if there is no such user."""
    tag: Tag | None = None
    """It takes only jobs with the same tag; None: only jobs without a tag."""
    bought: Commitment | None = None
    """What is reserved for a burst of the plan; None without budgets."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer}"

    def joined_by(self, demand: Demand) -> int:
        """Return how many of its nodes newly count against a job's user."""
        joins = bool(self.userids) and demand.userid not in self.userids
        return self.nodes if joins else 0


def new_burst(candidate: ProviderOffer, isolated: bool = False) -> Source:
    """Return the source that a new burst of an offer would be."""
    return Source(
        provider=candidate.provider,
        offer=candidate.offer.name,
        price=candidate.offer.price,
        priced_by=candidate.priced_by,
        guests=candidate.offer.guests,
        modes=candidate.offer.modes,
        spot=candidate.offer.spot,
        lasts=candidate.run_time,
        candidate=candidate,
        isolated=isolated,
    )


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


class Portion(NamedTuple):
    """What a job would have of a source."""

    use: FurtherUse = FurtherUse()
    """What it uses of the limits; nothing where limits are checked elsewhere."""
    pieces: tuple[tuple[str, int], ...] = ()
    """The rank slot of each burst that is made or grows, empty for none, and how many
    nodes its provider is asked for."""
    before: int = 0
    """How many nodes a burst of the plan that grows has already."""
    later: bool = False
    """Whether it is promised to the job, which gets it once others have ended."""
