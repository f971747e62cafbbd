# SPDX-License-Identifier: MIT
"""Lent nodes that Flux itself drained, for example after a prolog failed on them.

They get no job and still cost money, so their burst is taken down. The drain is undone
after the lease: Flux keeps it for the rank, not for the node that was there. A drain by
a person stays.
"""

from __future__ import annotations

import msgspec

from burst.core.actions import UndrainRanks
from burst.core.observation import ranks_of
from burst.core.plan.slots import readable_slots
from burst.core.records import Transaction, unread_leases
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.confinement import LENT
from burst.model.decision import name_ranks
from burst.model.flux_drain import flux_drain
from burst.model.ranks import format_idset


class DrainFound(msgspec.Struct, frozen=True):
    """Why Flux drained ranks of a burst."""

    note: str
    before_start: bool
    """See `burst.model.flux_drain`."""


def find_flux_drain(burst: Burst, world: World) -> DrainFound | None:
    """Return why Flux drained ranks of a burst; None if it drained none.

    If there are several reasons, one from before the start of jobs is preferred: it
    tells most about the nodes.
    """
    lead = world.lead
    assert lead is not None
    found = {
        rank: (drain, lead.drained[rank])
        for rank in ranks_of(burst, world) & lead.drained.keys()
        if (drain := flux_drain(lead.drained[rank])) is not None
    }
    if not found:
        return None
    first = min(found, key=lambda rank: (not found[rank][0].before_start, rank))
    drain, reason = found[first]
    alike = format_idset(r for r, (_, why) in found.items() if why == reason)
    note = f"Flux drained {name_ranks(alike)}: {reason}; see {drain.output}"
    return DrainFound(note, drain.before_start)


def undrain_free_ranks(tx: Transaction, world: World) -> None:
    """Undrain lent ranks that Flux drained and that no burst leases any more.

    Nothing runs on an offline rank for which Flux could drain it, so such a drain is
    left from a lease that has ended. Ranks of slots that are not declared any more are
    undrained, too, unless a record cannot be read: it may be of a burst on such ranks.
    """
    lead = world.lead
    assert lead is not None
    away = lead.drained.keys() - lead.online
    ours = {rank for rank in away if flux_drain(lead.drained[rank]) is not None}
    if not ours:
        return
    known = readable_slots(world.slots, unread_leases(tx))
    lent = {rank for slot in known for rank in slot.ranks}
    if not unread_leases(tx):
        lent |= world.identity.properties.get(LENT, frozenset())
    leased = {rank for burst in tx.live for rank in burst.lease.ranks}
    if free := ours & lent - leased:
        tx.actions.append(UndrainRanks(frozenset(free)))
