# SPDX-License-Identifier: MIT
"""What bursts cost and count in a bank, and how long an idle one stays: arithmetic.

Money is in the unit of the offers' prices, which has no name here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from burst.config import PolicyRule, Settings
from burst.core.money.ledger import Payer, settle
from burst.core.money.money import to_units
from burst.core.plan.online_times import OnlineTimes, ProviderTimes
from burst.core.plan.slots import RankSlot
from burst.core.records import RecordsView
from burst.core.standing import stands
from burst.core.world import World
from burst.model.accounting import UsageWeights
from burst.model.burst import Burst, Lease, State

_HOUR_S = 3600.0


def per_hour(burst: Burst) -> float:
    """Return the cost of an hour of all its nodes; 0 before it is made and after."""
    return (
        rate(burst)
        if burst.live and burst.first("provision-start") is not None
        else 0.0
    )


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
    since = burst.first("provision-start")
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


def idle_limit(burst: Burst, settings: Settings, *, awaited: bool = False) -> float:
    """Return for how many seconds a burst is kept once it is idle; math.inf for ever.

    A burst with a tag is kept until whoever requested it takes it down. `awaited` is
    whether jobs wait for it and for other nodes. Otherwise it would be made again for
    these jobs: so it is kept at least for as long as it took to come online.
    """
    if burst.lease.tag is not None:
        return math.inf
    if not awaited:
        return min(settings.deadlines.idle, burst.keep_idle)
    times = {event.name: event.timestamp for event in burst.events}
    boot = times["online"] - times["provision-start"]
    return max(settings.deadlines.idle, boot)


def totals(
    rows: Iterable[Mapping[str, Any]], slots: Sequence[RankSlot], settings: Settings
) -> dict[str, Any]:
    """Return the sums over the live bursts of these rows.

    `of` is the most nodes at a time: the limit, or else the ranks of all slots, or
    those in use if slots were made smaller; None if there is no limit and isolated
    bursts, which have no ranks, are live.
    """
    live = [row for row in rows if row["state"] != State.INACTIVE.value]
    limit = settings.limits.max_nodes
    ranks = sum(len(slot.ranks) for slot in slots)
    nodes = sum(row["nodes"] for row in live)
    isolated = any(row["isolated"] for row in live)
    return {
        "nodes": nodes,
        "of": limit or (None if isolated else max(ranks, nodes)),
        "per_hour": round(sum(row["per_hour"] for row in live), 4),
        "cost": round(sum(row["cost"] for row in live), 4),
    }


def rate(burst: Burst) -> float:
    """Return the cost of an hour of the burst: all its nodes, and its fee."""
    return burst.lease.price * burst.lease.nodes + burst.lease.fee


def break_even(nodes: int, boot: float, teardown: float, worth: float) -> float:
    """Return for how many seconds a burst of so many nodes is kept idle.

    Nobody knows when the next job comes. If an idle burst is kept until it has cost as
    much as making it again would, and no longer, the cost is never more than twice what
    it would be with that knowledge. No other rule without that knowledge promises less
    (the ski rental problem: Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy
    Caching, 1988).

    `boot` and `teardown` are in seconds; `worth` is that of the rule, in hours saved
    for each node-hour. To make the burst again costs its nodes for both, and a job
    waits while they boot, which the rule values at `boot / worth` node-seconds. If
    `worth` is 0, nobody is to wait, whatever it costs: the result is math.inf.
    """
    if worth <= 0:
        return math.inf
    return boot + teardown + boot / (worth * nodes)


def kept_idle(
    burst: Burst,
    payers: Iterable[Payer],
    rules: Sequence[PolicyRule],
    times: Mapping[str, ProviderTimes],
) -> float:
    """Return for how many seconds an online burst is kept once it is idle.

    The least worth of the rules that took its jobs counts. The result is math.inf if
    one of these is 0 or not known, or if no job with a rule had the burst. `times` is
    `Records.times`.
    """
    worth = {rule.name: rule.worth or 0.0 for rule in rules}
    # Nothing was bought for a job without a rule, which Flux started there by itself.
    bought = [payer.rule for payer in payers if payer.rule]
    asked = min((worth.get(rule, 0.0) for rule in bought), default=0.0)
    if not asked:
        return math.inf
    lease = burst.lease
    at = {event.name: event.timestamp for event in burst.events}
    boot = max(0.0, at["online"] - at["provision-start"])
    teardown = OnlineTimes(times).teardown(lease.provider, lease.offer, lease.nodes)
    return break_even(lease.nodes, boot, teardown, asked)


def usage_lines(bursts: Iterable[Burst], bank: str, world: World) -> list[str]:
    """Return for each kind of nodes of these bursts how it counts in a bank.

    flux-accounting 0.60 has weights for nodes, cores and GPUs, and none for a queue or
    a property (src/bindings/python/fluxacct/accounting/job_usage_calculation.py): it
    knows no difference between lent nodes and own ones.

    Empty where no flux-accounting counts usage.
    """
    lines = (usage_line(each.lease, bank, world) for each in bursts)
    return list(dict.fromkeys(filter(None, lines)))


def usage_line(lease: Lease, bank: str, world: World) -> str:
    """Return how nodes of a lease count in a bank; empty if nobody counts them."""
    facts = world.accounting
    if facts is None:
        return ""
    whose = f" of bank {bank}" if bank else ""
    counted = f"counts in the usage{whose} {_by_weights(facts.weights, lease, world)}"
    return f"a node of {lease.provider}/{lease.offer}: {counted}"


def _by_weights(weights: UsageWeights | None, lease: Lease, world: World) -> str:
    if weights is None:
        return "by flux-accounting's weights, which are the same for own nodes"
    named = f"node_weight {weights.node:g}, core_weight {weights.core:g}"
    named += f", gpu_weight {weights.gpu:g}"
    lent = weights.of(lease.shape)
    slots = {rank for slot in world.slots for rank in slot.ranks}
    own = sorted(
        {
            weights.of(shape)
            for rank, shape in enumerate(world.identity.shapes)
            if rank not in slots
        }
    )
    if own in ([], [lent]):
        return f"as {lent:g} per hour, like an own node (flux-accounting: {named})"
    beside = " to ".join(f"{each:g}" for each in dict.fromkeys((own[0], own[-1])))
    return f"as {lent:g} per hour, an own node as {beside} (flux-accounting: {named})"
