# SPDX-License-Identifier: MIT
"""What one plan is made on: ranks, offers, limits, live bursts, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import PlanSettings
from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import Eligibility
from burst.core.plan.lenders import LiveBurst
from burst.core.plan.limits import Usage
from burst.core.plan.never import AllSlots
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.rank_table import RankTable
from burst.core.plan.sources import Source
from burst.model.jobid import JobId


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. The table, the usage, the failures and the pools of bursts change in
    the plan.
    """

    now: float
    table: RankTable
    slots: AllSlots
    eligible: Eligibility
    """What tells which offers and bursts are for which jobs."""
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

    @property
    def catalog(self) -> OfferCatalog:
        """What is offered."""
        return self.eligible.catalog

    @property
    def usage(self) -> Usage:
        """What is in use of limits and budgets; it grows in the plan."""
        return self.eligible.usage

    def until(self, candidate: ProviderOffer, demand: Demand) -> float:
        """Return when a job will have ended at the latest on a new burst."""
        return demand.end(self.now + candidate.offer.join_time)

    def most_of(self, source: Source) -> int:
        """Return how many nodes one burst of an offer may have."""
        assert source.candidate is not None
        return int(min(source.candidate.offer.max_nodes, self.usage.largest_burst))
