# SPDX-License-Identifier: MIT
"""Requests the nodes that standing minimums lack, as a person by `burst request`."""

from __future__ import annotations

import msgspec

from burst.config import Settings
from burst.core.burst_requests import MoreNodes, more_nodes, request_nodes
from burst.core.plan.demands import Demand
from burst.core.plan.plan_demands import unread_use
from burst.core.records import Records, Transaction, unread_leases
from burst.core.standing import StandingMinimum, minimums_at
from burst.core.tick import TickResult, joined, result_of
from burst.core.world import World

_UNREAD = (
    "record burst/{0} cannot be read; its nodes count as some of this minimum: burst"
    " down {0} deletes them, and others are made"
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
        if unread_leases(before) and not view.read_at:
            continue  # it may show a burst of such a record
        for burst, use in unread_use(before, world).items():
            if minimum.may_have(burst, use):
                nodes -= use.nodes
                why[minimum.text()] = _UNREAD.format(burst)
        if nodes > 0:
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
