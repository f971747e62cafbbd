# SPDX-License-Identifier: MIT
"""The offer that a burst for a job would be made of; the burst is judged by it."""

from __future__ import annotations

from typing import NamedTuple

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.openings import Opening, Openings
from burst.core.plan.planned_bursts import DemandKey
from burst.core.worth.comparison import purchase_of
from burst.core.worth.estimate import Purchase
from burst.core.worth.online_times import OnlineTimes


class FirstOffer(NamedTuple):
    """What would be bought for a job."""

    key: str
    """`PROVIDER/OFFER`."""
    purchase: Purchase
    """The purchase of the nodes, with a run time of 0."""


class FirstOffers:
    """Finds the offer for each job, as if that job were the first of the plan."""

    def __init__(self, context: PlanContext, times: OnlineTimes) -> None:
        """`times` tells how long bursts took to come online and to be taken down."""
        self._context = context
        self._times = times
        self._openings = Openings(context)
        self._found: dict[DemandKey, FirstOffer | None] = {}

    def find(self, demand: Demand) -> FirstOffer | None:
        """Return the offer that a job could have now, else one it could have later.

        None if no offer could ever serve it.
        """
        key = self._openings.key(demand)
        if key not in self._found:
            self._found[key] = self._now(demand) or self._later(demand)
        return self._found[key]

    def _now(self, demand: Demand) -> FirstOffer | None:
        found = self._openings.find(demand)
        if isinstance(found, Opening):
            return self._offer(found.candidate, found.nodes)
        return None

    def _later(self, demand: Demand) -> FirstOffer | None:
        for source in self._openings.wanted(demand):
            nodes = self._context.nodes(demand, source)
            if nodes:
                assert source.candidate is not None
                return self._offer(source.candidate, nodes)
        return None

    def _offer(self, candidate: ProviderOffer, nodes: int) -> FirstOffer:
        purchase = purchase_of(candidate, nodes, 0.0, self._times)
        return FirstOffer(candidate.key, purchase)
