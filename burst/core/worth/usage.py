# SPDX-License-Identifier: MIT
"""How node-hours on lent nodes count in a bank's usage.

flux-accounting 0.60 has weights for nodes, cores and GPUs, and none for a queue or a
property (src/bindings/python/fluxacct/accounting/job_usage_calculation.py): it knows no
difference between lent nodes and own ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.core.world import World
from burst.model.accounting import UsageWeights
from burst.model.burst import Burst, Lease


def usage_lines(bursts: Iterable[Burst], bank: str, world: World) -> list[str]:
    """Return for each kind of nodes of these bursts how it counts in a bank.

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
