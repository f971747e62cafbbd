# SPDX-License-Identifier: MIT
"""Shrinks bursts of which the last nodes are idle while others work.

Since when they are idle is kept from tick to tick and not on record: after a restart
of the daemon they are waited for anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.cost import awaited_idle_limit, idle_limit
from burst.core.plan.plan_growth import may_be_resized
from burst.core.records import Transaction
from burst.core.resizing import begin_shrink
from burst.core.standing import is_needed
from burst.core.world import World
from burst.model.burst import Burst, BurstId
from burst.model.fsd import format_fsd
from burst.model.lead import LeadView


class IdlePart(msgspec.Struct, frozen=True):
    """The nodes of a burst behind the last one that works."""

    nodes: int
    """How many are before them."""
    since: float


def shrink_idle(
    tx: Transaction,
    before: Mapping[BurstId, IdlePart],
    world: World,
    settings: Settings,
    *,
    jobs_wait: bool,
) -> Mapping[BurstId, IdlePart]:
    """Have bursts shrink whose last nodes are idle for too long; return which are idle.

    `before` is what the tick before returned. `jobs_wait` is whether a job waits for
    which no nodes can be had now: it may have these with others that become free. Nodes
    of a burst on which a job counts that has not started are not idle. One on which
    nothing runs at all is taken down.
    """
    lead = world.lead
    assert lead is not None
    found: dict[BurstId, IdlePart] = {}
    for burst in tx.live:
        used = _used_nodes(burst, lead)
        waited_for = burst.jobs - burst.started or burst.id in tx.awaited
        may = may_be_resized(burst, world, settings) and not waited_for
        may = may and not is_needed(tx, burst, settings, tx.now, used)
        if not may or not 0 < used < burst.lease.nodes:
            continue
        known = before.get(burst.id, IdlePart(0, tx.now))
        part = IdlePart(max(used, known.nodes), known.since)
        found[burst.id] = part
        limit_of = awaited_idle_limit if jobs_wait else idle_limit
        limit = limit_of(burst, settings)
        stays = burst.expected.intersection(burst.lease.ranks[: part.nodes])
        if stays and tx.now - part.since > limit:
            note = f"its last nodes were idle for {format_fsd(limit)}"
            begin_shrink(tx, burst, part.nodes, note)
    return found


def _used_nodes(burst: Burst, lead: LeadView) -> int:
    """Return how many nodes there are up to the last one on which something runs."""
    ranks, in_use = burst.lease.ranks, lead.in_use
    used = [n for n, rank in enumerate(ranks, 1) if rank in in_use]
    return max(used, default=0)
