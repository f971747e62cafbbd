# SPDX-License-Identifier: MIT
"""Finds out whether a live burst can have further nodes, and on which ranks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from burst.config import Settings
from burst.core.plan.capacity import source_of
from burst.core.plan.catalog import OfferCatalog
from burst.core.plan.leasable import free_ranks
from burst.core.plan.limits import FurtherUse
from burst.core.plan.slots import RankSlot, readable_slots
from burst.core.plan.sources import Portion, Source
from burst.core.records import RecordsView, unread_leases
from burst.model.burst import Burst, Lease
from burst.model.lead import LeadIdentity, LeadView


def slot_of(burst: Burst, slots: Sequence[RankSlot]) -> RankSlot | None:
    """Return the rank slot that has all ranks of a burst, as slots are declared now."""
    ranks = frozenset(burst.lease.ranks)
    return next((slot for slot in slots if ranks and ranks.issubset(slot.ranks)), None)


def free_above(
    burst: Burst, slots: Sequence[RankSlot], records: RecordsView, view: LeadView
) -> frozenset[int]:
    """Return the free ranks of a burst's slot above its last one.

    They are free as for a new burst: a slot whose hosts join through a gateway has
    none, as it is leased as a whole.
    """
    slot = slot_of(burst, slots)
    if slot is None:
        return frozenset()
    known = readable_slots([slot], unread_leases(records))
    free = free_ranks(known, records.live, view)
    last = max(burst.lease.ranks)
    return frozenset(rank for rank in free if rank > last)


def with_ranks(lease: Lease, more: Sequence[int], identity: LeadIdentity) -> Lease:
    """Return the lease of a burst that has further ranks, too."""
    hosts = (*lease.hosts, *(identity.hosts[rank] for rank in more))
    return msgspec.structs.replace(lease, hosts=hosts, ranks=(*lease.ranks, *more))


def growing(
    burst: Burst, catalog: OfferCatalog, settings: Settings, now: float
) -> Source:
    """Return the source of further nodes of a live burst, by its offer as it is now."""
    source = source_of(burst, settings, now)
    same = (each for each in catalog.known if each.key == source.key)
    source.candidate = next(same, None)
    return source


def growth_portion(burst: Burst, more: int, *, charged: bool) -> Portion:
    """Return the portion of a source that `more` further nodes of a burst are.

    With `charged` false, limits count these nodes already.
    """
    lease = burst.lease
    use = FurtherUse(
        offer=lease.key,
        sizes=(lease.nodes + more,),
        nodes=more if charged else 0,
        charged=dict.fromkeys(lease.userids if charged else (), more),
    )
    return Portion(use, ((lease.slot, more),))
