# SPDX-License-Identifier: MIT
"""Which ranks of rank slots a new burst may lease."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from burst.core.placement.slots import RankSlot, slot_holders
from burst.model.burst import Burst
from burst.model.lead import LeadView


def free_ranks(
    slots: Sequence[RankSlot],
    bursts: Iterable[Burst],
    view: LeadView,
    unread: Iterable[str] = (),
) -> list[RankSlot]:
    """Return the slots of which something is free, each of its free ranks alone.

    Free are the ranks that no live burst has, that are neither drained nor excluded,
    and that no pending job is confined to. Nothing of a slot is free of which a rank
    that no burst has is up, unfreed or allocated: whose that is, and what more of it
    comes, is not known; nor of one that a burst may have of which the record cannot be
    read. A slot whose hosts join through a gateway is free as a whole or not at all.
    """
    live = [burst for burst in bursts if burst.live]
    leased = {rank for burst in live for rank in burst.lease.ranks}
    hosts = {host for burst in live for host in burst.lease.hosts}
    stuck = slot_holders(slots, (), unread)
    unclear = view.online | view.torpid | view.unfreed | view.allocated
    not_now = view.closed | view.promised
    found: list[RankSlot] = []
    for slot in slots:
        left = frozenset(
            rank
            for rank, host in zip(slot.ranks, slot.hosts, strict=True)
            if rank not in leased and host not in hosts
        )
        if slot.name in stuck or not unclear.isdisjoint(left):
            continue
        free = left - not_now
        if free and (slot.divisible or len(free) == slot.size):
            found.append(narrowed(slot, free))
    return found


def narrowed(slot: RankSlot, admitted: frozenset[int]) -> RankSlot:
    """Return a slot of those ranks alone that are admitted; it may have none.

    Hosts that join through another one have to be in the same burst: of such a slot
    the first ranks, up to one that is not admitted.
    """
    if not slot.divisible:
        first = run_of(slot, admitted)
        pairs = [*zip(slot.ranks, slot.hosts, strict=True)][:first]
    else:
        both = zip(slot.ranks, slot.hosts, strict=True)
        pairs = [(rank, host) for rank, host in both if rank in admitted]
    if len(pairs) == slot.size:
        return slot
    ranks, hosts = tuple(r for r, _ in pairs), tuple(h for _, h in pairs)
    return msgspec.structs.replace(slot, ranks=ranks, hosts=hosts)


def run_of(slot: RankSlot, admitted: frozenset[int]) -> int:
    """Return how many ranks from a slot's first one are admitted."""
    for number, rank in enumerate(slot.ranks):
        if rank not in admitted:
            return number
    return slot.size
