# SPDX-License-Identifier: MIT
"""What bursts cost, and how long an idle one stays: arithmetic on records.

Money is in the unit of the offers' prices, which has no name here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from burst.config import Settings
from burst.core.plan.slots import RankSlot
from burst.core.records import RecordsView
from burst.core.sizes import provisioned_at
from burst.core.standing import stands
from burst.core.worth.ledger import settle
from burst.core.worth.money import to_units
from burst.model.burst import Burst, State

_HOUR_S = 3600.0


def per_hour(burst: Burst) -> float:
    """Return the cost of an hour of all its nodes; 0 before it is made and after."""
    return rate(burst) if burst.live and provisioned_at(burst) is not None else 0.0


def cost(records: RecordsView, burst: Burst, now: float) -> float:
    """Return what a burst has cost until now, or until nothing of it was left.

    It is the amount in budgets and `burst cost`. If the ledger has no row of the burst,
    it is computed from the first call of `provision`, for as many nodes as it has now:
    the true cost may be less, as providers bill from the time when the nodes exist.
    """
    entry, settled = records.entries.get(burst.id), records.settled.get(burst.id)
    if entry is not None:
        settled = settle(entry, now)
    if settled is not None:
        return to_units(settled.costs.total)
    since = provisioned_at(burst)
    if since is None:
        return 0.0
    ends = now if burst.live else burst.since
    return max(0.0, ends - since) * rate(burst) / _HOUR_S


def seconds_until_drain(burst: Burst, settings: Settings, now: float) -> float | None:
    """Return the seconds until an idle burst is drained; None if that is not known.

    It is not for one that is busy or stays, nor for one that is idle for longer than
    its limit, as a job waits for it and for nodes that are busy.
    """
    limit = idle_limit(burst, settings)
    if stands(burst.lease, settings, now):
        return None
    if burst.state is not State.ONLINE or burst.idle_since is None or math.isinf(limit):
        return None
    left = burst.idle_since + limit - now
    return left if left >= 0 else None


def idle_limit(burst: Burst, settings: Settings) -> float:
    """Return for how many seconds a burst is kept once it is idle; math.inf for ever.

    A burst with a tag is kept until whoever requested it takes it down.
    """
    if burst.lease.tag is not None:
        return math.inf
    return min(settings.deadlines.idle, burst.keep_idle)


def awaited_idle_limit(burst: Burst, settings: Settings) -> float:
    """Return for how many seconds a burst is kept idle while jobs wait for nodes.

    Otherwise it would be made again for these jobs: so it is kept at least for as long
    as it took to come online.
    """
    times = {event.name: event.timestamp for event in burst.events}
    boot = times["online"] - times["provision-start"]
    return max(settings.deadlines.idle, boot)


def totals(
    rows: Iterable[Mapping[str, Any]], slots: Sequence[RankSlot], settings: Settings
) -> dict[str, Any]:
    """Return the sums over the live bursts of these rows.

    `of` is the most nodes at a time: the limit, or else the ranks of all slots; None if
    there is no limit and isolated bursts, which have no ranks, are live.
    """
    live = [row for row in rows if row["state"] != State.INACTIVE.value]
    limit = settings.limits.max_nodes
    ranks = sum(len(slot.ranks) for slot in slots)
    isolated = any(row["isolated"] for row in live)
    return {
        "nodes": sum(row["nodes"] for row in live),
        "of": limit or (None if isolated else ranks),
        "per_hour": round(sum(row["per_hour"] for row in live), 4),
        "cost": round(sum(row["cost"] for row in live), 4),
    }


def rate(burst: Burst) -> float:
    """Return the cost of an hour of the burst: all its nodes, and its fee."""
    return burst.lease.price * burst.lease.nodes + burst.lease.fee
