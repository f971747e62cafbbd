# SPDX-License-Identifier: MIT
"""At which factor node-hours on lent nodes count in a bank's usage.

flux-accounting 0.60 has weights for nodes, cores and GPUs, and none for a queue or a
property (src/bindings/python/fluxacct/accounting/job_usage_calculation.py): it knows no
difference between lent nodes and own ones. A site that wants one says it in its
settings, so that users are told.
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.config import Settings
from burst.core.world import World
from burst.model.accounting import UsageWeights
from burst.model.burst import Burst, Lease


def usage_lines(
    bursts: Iterable[Burst], bank: str, world: World, settings: Settings
) -> list[str]:
    """Return for each kind of nodes of these bursts how it counts in a bank.

    Empty where neither flux-accounting nor the site counts usage.
    """
    lines = (usage_line(each.lease, bank, world, settings) for each in bursts)
    return list(dict.fromkeys(filter(None, lines)))


def usage_line(lease: Lease, bank: str, world: World, settings: Settings) -> str:
    """Return how nodes of a lease count in a bank; empty where nobody counts them."""
    told = []
    facts = world.accounting
    if facts is not None:
        whose = f" of bank {bank}" if bank else ""
        counted = _by_weights(facts.weights, lease, world)
        told.append(f"counts in the usage{whose} {counted}")
    table = settings.providers.get(lease.provider)
    factor = table.usage_factor if table else None
    if factor is not None:
        told.append(
            f"the site counts it {factor:g} times"
            f" ([providers.{lease.provider}] usage_factor)"
        )
    if not told:
        return ""
    return f"a node of {lease.provider}/{lease.offer}: {'; '.join(told)}"


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
        return f"{lent:g} an hour by flux-accounting, as an own node ({named})"
    beside = " to ".join(f"{each:g}" for each in dict.fromkeys((own[0], own[-1])))
    return f"{lent:g} an hour by flux-accounting, an own node {beside} ({named})"
