# SPDX-License-Identifier: MIT
"""Shrinks bursts whose last nodes are idle while others work or have to stay.

The time since when nodes are idle is kept from tick to tick, but not on record: it
begins anew after a restart of the daemon.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.cost import awaited_idle_limit, idle_limit
from burst.core.plan.growth import may_be_resized
from burst.core.records import Transaction
from burst.core.resizing import begin_shrink
from burst.core.standing import nodes_needed_of
from burst.core.world import World
from burst.model.burst import BurstId
from burst.model.fsd import format_fsd


class IdlePart(msgspec.Struct, frozen=True):
    """The idle nodes of a burst after its last node in use or of a minimum."""

    nodes: int
    """The number of nodes before them."""
    since: float


def shrink_idle(
    tx: Transaction,
    before: Mapping[BurstId, IdlePart],
    world: World,
    settings: Settings,
    *,
    jobs_wait: bool,
) -> Mapping[BurstId, IdlePart]:
    """Shrink bursts whose last nodes are idle for too long; return the idle nodes.

    `before` is what the previous tick returned. `jobs_wait` tells whether a job waits
    that can have no nodes now: it may get these nodes with others that become free. No
    nodes of a burst count as idle while an assigned job has not started, nor do those
    that a standing minimum needs. A burst of idle nodes alone is taken down instead.
    """
    lead = world.lead
    assert lead is not None
    found: dict[BurstId, IdlePart] = {}
    for burst in tx.live:
        waited_for = burst.jobs - burst.started or burst.id in tx.awaited
        if waited_for or not may_be_resized(burst, world, settings.plan):
            continue
        needed = nodes_needed_of(tx, burst, settings, tx.now)
        in_use = lead.in_use.intersection(burst.lease.ranks)
        used = [n for n, rank in enumerate(burst.lease.ranks, 1) if rank in in_use]
        # Up to the last one on which something runs.
        kept = max([needed, *used])
        if not 0 < kept < burst.lease.nodes:
            continue
        known = before.get(burst.id, IdlePart(0, tx.now))
        part = IdlePart(max(kept, known.nodes), known.since)
        found[burst.id] = part
        limit_of = awaited_idle_limit if jobs_wait else idle_limit
        limit = limit_of(burst, settings)
        stays = burst.expected.intersection(burst.lease.ranks[: part.nodes])
        if stays and tx.now - part.since > limit:
            note = f"its last nodes were idle for {format_fsd(limit)}"
            begin_shrink(tx, burst, part.nodes, note)
    return found
