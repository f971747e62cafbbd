# SPDX-License-Identifier: MIT
"""Tells which offers a job could have, if not now and if they last long enough."""

from __future__ import annotations

import math
from typing import NamedTuple

from burst.core.plan.demands import Demand
from burst.core.plan.eligible import burst_mode, nodes_wanted, why_unwanted
from burst.core.plan.never import AllSlots
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.sources import new_burst
from burst.model.decision import OfferRejection
from burst.model.lead import LeadIdentity


class PossibleOffers(NamedTuple):
    """What decides whether a job could have an offer."""

    slots: AllSlots
    lead: LeadIdentity
    spread: bool
    """Whether a job may have several bursts if it does not refuse that."""
    largest: float
    """How many nodes one burst may have."""

    def could_have(self, demand: Demand, candidate: ProviderOffer) -> bool:
        """Tell whether a job could have all its nodes of an offer at some time."""
        offer, its = candidate.offer, demand.preferences
        isolated = burst_mode(its, offer.modes) == "isolated"
        source = new_burst(candidate, isolated)
        if why_unwanted(its, source):
            return False
        most = int(min(offer.max_nodes, self.largest))
        if isolated:
            need = nodes_wanted(demand, source, offer.shape)
            fits = not isinstance(need, OfferRejection) and need <= most
            return fits and not self.lead.may_be_guest(demand.userid)
        spread = self.spread and its.where != "together"
        nodes = self.slots.nodes_for(demand, source, most, spread=spread)
        return 0 < nodes <= (offer.total or math.inf)
