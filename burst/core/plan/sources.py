# SPDX-License-Identifier: MIT
"""Where jobs get nodes from, by what decides which jobs may."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.core.plan.demands import Demand
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer, Terms
from burst.core.worth.budget import Commitment
from burst.model.burst import BurstId, Tag


class Source(msgspec.Struct, kw_only=True):
    """Where a job may get nodes from, by what decides which jobs may: an offer, or a
    burst, live or of the plan.
    """

    terms: Terms
    lasts: float
    """For how many seconds jobs can run on it."""
    candidate: ProviderOffer | None = None
    """The offer by which nodes of it are bought; None of a live burst that only lends
    what it has, and of one whose offer is gone."""
    isolated: bool = False
    """Whether a burst of it is an isolated one."""
    burst: BurstId | None = None
    """Which live burst it is."""
    nodes: int = 0
    """How many the burst has; 0 of one that is not made yet."""
    stays: float = 0.0
    """For how many seconds a live burst is kept anyway: by the time limits of its jobs,
    or while it is idle."""
    userids: frozenset[int] = frozenset()
    """For whose jobs; empty for anybody's."""
    requester: int | None = None
    """Who requested it, and alone may use it, even where users share bursts."""
    tag: Tag | None = None
    """It takes no jobs but those with the same tag, or without one as it has none."""
    bought: Commitment | None = None
    """What is reserved for a burst of the plan, where there are budgets."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return self.terms.key

    def joined_by(self, demand: Demand) -> int:
        """Return how many nodes count anew against a job's user with this source."""
        joins = bool(self.userids) and demand.userid not in self.userids
        return self.nodes if joins else 0


def new_burst(candidate: ProviderOffer, isolated: bool = False) -> Source:
    """Return the source that a burst of an offer would be."""
    return Source(
        terms=candidate.terms,
        lasts=candidate.run_time,
        candidate=candidate,
        isolated=isolated,
    )


class Portion(NamedTuple):
    """What a job would have of a source."""

    use: FurtherUse = FurtherUse()
    """Of the limits; nothing where they are asked otherwise."""
    pieces: tuple[tuple[str, int], ...] = ()
    """The rank slot of each burst that is made or grows, empty for none, and how many
    nodes its provider is asked for."""
    before: int = 0
    """How many nodes a burst of the plan has already that grows."""
    later: bool = False
    """Whether it is promised to the job, which gets it once others have ended."""
