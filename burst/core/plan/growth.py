# SPDX-License-Identifier: MIT
"""Whether a live burst can have further nodes, and which ranks these would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from burst.core.plan.leasable import free_ranks
from burst.core.plan.limits import FurtherUse, Usage
from burst.core.plan.offers import OfferCatalog, ProviderOffer
from burst.core.plan.slots import RankSlot
from burst.core.records import RecordsView
from burst.model.burst import Burst
from burst.model.lead import LeadView


class FurtherRanks(NamedTuple):
    """Ranks that a burst is to have beside its own, and the hosts that have them."""

    hosts: tuple[str, ...]
    ranks: tuple[int, ...]


def slot_of(burst: Burst, slots: Sequence[RankSlot]) -> RankSlot | None:
    """Return the rank slot that has all ranks of a burst, as slots are declared now."""
    ranks = frozenset(burst.lease.ranks)
    return next((slot for slot in slots if ranks and ranks.issubset(slot.ranks)), None)


def free_above(
    burst: Burst, slots: Sequence[RankSlot], records: RecordsView, view: LeadView
) -> FurtherRanks:
    """Return the free ranks of a burst's slot above its last one, in the lead's order.

    They are free as for a new burst: none where hosts of the slot join through a
    gateway, which may leave last.
    """
    slot = slot_of(burst, slots)
    last = max(burst.lease.ranks, default=0)
    if slot is None:
        return FurtherRanks((), ())
    free = free_ranks([slot], records.live, view, records.unread_leases)
    pairs = [
        (host, rank)
        for host, rank in zip(slot.hosts, slot.ranks, strict=True)
        if rank in free and rank > last
    ]
    return FurtherRanks(tuple(h for h, _ in pairs), tuple(r for _, r in pairs))


def offer_of(burst: Burst, catalog: OfferCatalog) -> ProviderOffer | None:
    """Return the offer by which a burst was made, if it can be taken now."""
    key = f"{burst.lease.provider}/{burst.lease.offer}"
    return next((each for each in catalog.offers if each.key == key), None)


def why_not_grown(burst: Burst, more: int, catalog: OfferCatalog, usage: Usage) -> str:
    """Return why a burst may not have so many nodes more; empty if it may.

    By its offer, what is held against its provider, limits and budgets.
    """
    lease = burst.lease
    key, nodes = f"{lease.provider}/{lease.offer}", lease.nodes + more
    candidate = offer_of(burst, catalog)
    if candidate is None:
        why = (r.text() for r in catalog.refusals if r.offer in (key, lease.provider))
        return next(why, f"{key} is not offered now")
    if nodes > candidate.offer.max_nodes:
        return f"{key} sells {candidate.offer.max_nodes} nodes at the most"
    # What had failed is tried by new bursts, of which it is seen when they are online.
    if {lease.provider, key} & {*catalog.on_trial, *catalog.to_try, *catalog.trials}:
        return f"one burst tries whether {key} works again"
    asked = FurtherUse(
        offer=key,
        sizes=(nodes,),
        nodes=more,
        charged=dict.fromkeys(lease.userids, more),
    )
    refused = (
        catalog.why_refused(candidate, lease.slot, more)
        or usage.why_not(asked)
        or usage.purchases.refuse_growth(burst, more)
    )
    return refused.text() if refused else ""
