# SPDX-License-Identifier: MIT
"""Requests the nodes that standing minimums lack, as a person by `burst request`."""

from __future__ import annotations

import msgspec

from burst.config import Settings
from burst.core.burst_requests import MoreNodes, more_nodes, request_nodes
from burst.core.plan.demands import Demand
from burst.core.records import Records, Transaction
from burst.core.standing import StandingMinimum, minimums_at
from burst.core.tick import TickResult, joined, result_of
from burst.core.world import World

_UNREAD = (
    "record {} cannot be read; it may belong to a burst for this minimum, which burst"
    " down or burst gc --yes deletes"
)


def keep_minimums(
    records: Records, world: World, settings: Settings, now: float
) -> tuple[TickResult, dict[str, str]]:
    """Make bursts for the nodes that minimums lack, as many as can be had.

    Also returns, by the text of a minimum, why not all its nodes can be had. Raises
    Unreadable.
    """
    results, why = [result_of(Transaction(records, now))], {}
    for minimum in minimums_at(settings, now):
        before = results[-1].records
        nodes, view = minimum.missing(before), world.providers.get(minimum.provider)
        if nodes <= 0 or view is None or view.offers is None:
            continue  # a provider that has not answered yet is no reason to warn
        if before.unread_leases:
            why[minimum.text()] = _UNREAD.format(before.unread_leases[0])
        else:
            wanted = MoreNodes(demand=_demand_of(minimum, nodes), least=1)
            made = more_nodes(before, world, settings, wanted, now)
            results.append(made.result)
            if made.why:
                why[minimum.text()] = made.why
    return joined(results), why


def _demand_of(minimum: StandingMinimum, nodes: int) -> Demand:
    demand = request_nodes(nodes, minimum.provider)
    return msgspec.structs.replace(
        demand,
        preferences=msgspec.structs.replace(
            demand.preferences, offer=minimum.table.offer
        ),
        standing=minimum.text(),
    )
