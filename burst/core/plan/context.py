# SPDX-License-Identifier: MIT
"""The inputs of one plan: ranks, offers, limits, live bursts, settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from burst.config import PlanSettings
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import (
    Eligibility,
    IsolatedFacts,
    burst_mode,
    nodes_wanted,
    why_not_isolated,
    why_unwanted,
)
from burst.core.plan.limits import Usage
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slot_ranks import by_need
from burst.core.plan.sources import LiveBurst, Source, new_burst
from burst.core.select.constraints import Constraints
from burst.model.decision import OfferRejection
from burst.model.jobid import JobId


class PossibleOffers(NamedTuple):
    """What decides whether a job could have an offer, if not now."""

    table: RankTable
    constraints: Constraints
    isolated: IsolatedFacts
    spread: bool
    """Whether a job may have several bursts if it does not refuse that."""
    largest: float
    """How many nodes one burst may have."""

    def may_spread(self, demand: Demand) -> bool:
        """Tell whether a job may have several bursts."""
        return self.spread and demand.preferences.where != "together"

    def most_of(self, source: Source) -> int:
        """Return the most nodes that one burst of an offer may have."""
        assert source.candidate is not None
        offer = source.candidate.offer
        return int(min(offer.max_nodes, offer.total or math.inf, self.largest))

    def could_have(self, demand: Demand, candidate: ProviderOffer) -> bool:
        """Tell whether a job could have all its nodes of an offer at some time."""
        preferences = demand.preferences
        isolated = burst_mode(preferences, candidate.offer.modes) == "isolated"
        source = new_burst(candidate, isolated)
        why = why_unwanted(preferences, source)
        if why or why_not_isolated(demand, source, self.isolated):
            return False
        return self.nodes(demand, source) > 0

    def nodes(self, demand: Demand, source: Source) -> int:
        """Return how many nodes of an offer a job needs; 0 if it never gets so many."""
        assert source.candidate is not None
        offer, most = source.candidate.offer, self.most_of(source)
        if source.isolated:
            need = nodes_wanted(demand, source, offer.shape)
            nodes = 0 if isinstance(need, OfferRejection) or need > most else need
        else:
            nodes = self._joined_nodes(demand, source, most)
        return nodes if nodes <= (offer.total or math.inf) else 0

    def _joined_nodes(self, demand: Demand, source: Source, most: int) -> int:
        """Return the same for an offer whose bursts join, and have at most `most`."""
        admitted = self.constraints.admitted_to(demand.request)
        spread = self.may_spread(demand)
        for kind in by_need(demand.lacks, self.table.classes(source.provider)):
            need = nodes_wanted(demand, source, kind[0])
            if isinstance(need, OfferRejection):
                continue
            if need <= self.table.capacity(kind, admitted, most, spread=spread):
                return need
        return 0


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
        return self.constraints.admitted_to(demand.request)

    @property
    def usage(self) -> Usage:
        """What is in use of limits and budgets; it grows as the plan is made."""
        return self.eligible.usage

    def until(self, candidate: ProviderOffer, demand: Demand) -> float:
        """Return the latest time at which a job will have ended on a new burst."""
        return demand.end(self.now + candidate.offer.join_time)
