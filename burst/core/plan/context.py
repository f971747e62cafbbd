# SPDX-License-Identifier: MIT
"""The inputs of one plan: ranks, offers, limits, live bursts, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import PlanSettings
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import Eligibility
from burst.core.plan.lenders import LiveBurst
from burst.core.plan.limits import Usage
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.possible_offers import PossibleOffers
from burst.core.plan.rank_table import RankTable
from burst.core.select.constraints import Constraints
from burst.model.jobid import JobId


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of one plan. Making the plan changes the table, the usage, the
    failures and the pools of bursts.
    """

    now: float
    possible: PossibleOffers
    """Tells which offers a job could have, if not now."""
    eligible: Eligibility
    """Tells which offers and bursts each job may have."""
    live: Sequence[LiveBurst] = ()
    settings: PlanSettings = PlanSettings()
    patience: float = 0.0
    """For how many seconds after a job's submission ranks are kept for it while no time
    limit tells when they become free: RESERVATION_S of `plan_demands`."""
    overtaken: Mapping[JobId, int] = {}
    """By waiting job: how many of the nodes that it waits for earlier plans gave to
    other jobs; see `LiveNodes.overtaken`."""
    whole_nodes: bool = False
    """Whether the scheduler gives each job whole nodes."""

    @property
    def table(self) -> RankTable:
        """All ranks of all slots."""
        return self.possible.table

    @property
    def constraints(self) -> Constraints:
        """Tells which ranks the constraints of jobs admit."""
        return self.possible.constraints

    def admitted(self, demand: Demand) -> frozenset[int] | None:
        """Return the ranks that a job may have by its constraint; None for any."""
        return self.possible.constraints.admitted_to(demand.request)

    @property
    def usage(self) -> Usage:
        """What is in use of limits and budgets; it grows as the plan is made."""
        return self.eligible.usage

    def until(self, candidate: ProviderOffer, demand: Demand) -> float:
        """Return the latest time at which a job will have ended on a new burst."""
        return demand.end(self.now + candidate.offer.join_time)
