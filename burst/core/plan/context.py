# SPDX-License-Identifier: MIT
"""What one plan is made on: ranks, offers, limits, live bursts, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import PlanSettings
from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import Eligibility, IsolatedFacts
from burst.core.plan.lenders import LiveBurst
from burst.core.plan.limits import Usage
from burst.core.plan.never import AllSlots
from burst.core.plan.rank_table import RankTable
from burst.core.plan.sources import Source
from burst.model.jobid import JobId


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. The table, the usage and the pools of bursts change in the plan."""

    now: float
    table: RankTable
    slots: AllSlots
    catalog: OfferCatalog
    usage: Usage
    live: Sequence[LiveBurst] = ()
    settings: PlanSettings = PlanSettings()
    patience: float = 0.0
    """For how many seconds after its submission ranks are kept for a job while no time
    limit tells when they are free: RESERVATION_S of `plan_demands`."""
    overtaken: Mapping[JobId, int] = {}
    """How many nodes that jobs waited for were given to others before: see
    `LiveNodes.overtaken`."""
    whole_nodes: bool = False
    """Whether the scheduler gives each job whole nodes."""

    def admitted(self, demand: Demand) -> frozenset[int] | None:
        """Return the ranks that a job may have by its constraint; None for any."""
        return self.slots.constraints.admitted_to(demand.request)

    def may_spread(self, demand: Demand) -> bool:
        """Tell whether a job may have several bursts."""
        return self.settings.spread and demand.preferences.where != "together"

    def eligible(self, isolated: IsolatedFacts) -> Eligibility:
        """Return what tells which offers and bursts are for which jobs."""
        return Eligibility(
            self.catalog,
            self.usage,
            isolated,
            share_users=self.settings.share_users,
            lasts=[live.source.lasts for live in self.live],
        )

    def most_of(self, source: Source) -> int:
        """Return how many nodes one burst of an offer may have."""
        assert source.candidate is not None
        return int(min(source.candidate.offer.max_nodes, self.usage.largest_burst))
