# SPDX-License-Identifier: MIT
"""Tells which offers a job could have, if not now and if they last long enough."""

from __future__ import annotations

import math
from typing import NamedTuple

from burst.core.plan.demands import Demand
from burst.core.plan.eligible import (
    IsolatedFacts,
    burst_mode,
    nodes_wanted,
    why_not_isolated,
    why_unwanted,
)
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slot_ranks import by_need
from burst.core.plan.sources import Source, new_burst
from burst.core.select.constraints import Constraints
from burst.model.decision import OfferRejection


class PossibleOffers(NamedTuple):
    """What decides whether a job could have an offer."""

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
        return int(min(source.candidate.offer.max_nodes, self.largest))

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
