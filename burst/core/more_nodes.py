# SPDX-License-Identifier: MIT
"""`burst request`: nodes ahead of jobs, as many as can be had where fewer will do."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.config import Settings
from burst.core.commands import describe_request, make_requested_burst
from burst.core.plan.demands import Demand
from burst.core.records import Records
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import BurstError
from burst.model.burst import BurstId


class MoreNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that somebody requests ahead of jobs, or an isolated burst."""

    demand: Demand
    least: int = 0
    """So many will do where no more can be had; 0: all or none."""
    grow: bool = False
    """Whether a burst with the same tag grows, where one can, in place of another."""
    note: str = ""
    """Why, for the record of a burst that grows."""


class NodesMade(NamedTuple):
    """What came of it."""

    result: TickResult
    bursts: list[BurstId]
    """New ones, or the one that grows; none where nothing can be had."""
    text: str
    """One sentence for a person: what was made, or why nothing could be."""
    why: str
    """Why not all nodes could be had; empty if they could."""


def more_nodes(
    records: Records, world: World, settings: Settings, wanted: MoreNodes, now: float
) -> NodesMade:
    """Have a burst grow, or make bursts: of half the nodes as long as all is refused.

    Raises Unreadable.
    """
    refusal, nodes = "", wanted.demand.request.nodes
    while True:
        wanted = _of_size(wanted, nodes)
        demand = wanted.demand
        grown = _grow(records, world, settings, wanted, now)
        if grown is not None:
            return grown._replace(why=refusal)
        made, decision = make_requested_burst(records, world, settings, demand, now)
        new = sorted(made.records.bursts.keys() - records.bursts.keys())
        text = describe_request(decision, demand)
        if new:
            return NodesMade(made, new, text, refusal)
        refusal = refusal or text
        nodes //= 2
        if not wanted.least or nodes < wanted.least:
            return NodesMade(made, [], refusal, refusal)


def _grow(
    records: Records, world: World, settings: Settings, wanted: MoreNodes, now: float
) -> NodesMade | None:
    """Have the oldest burst with the tag grow that can; None where none can."""
    tag, more = wanted.demand.tag, wanted.demand.request.nodes
    its = [burst for burst in records.live if wanted.grow and burst.lease.tag == tag]
    for burst in sorted(its, key=lambda each: (each.lease.created, each.id)):
        before = burst.resize.nodes if burst.resize else burst.lease.nodes
        size = WantedSize(burst.id, before + more, wanted.note or "by request")
        try:
            made, answer = resize_burst(records, world, settings, size, now)
        except BurstError:
            continue
        return NodesMade(made, [burst.id], answer.text, "")
    return None


def _of_size(wanted: MoreNodes, nodes: int) -> MoreNodes:
    """Return a request of as many nodes."""
    demand = wanted.demand
    request = msgspec.structs.replace(demand.request, nodes=nodes, slots=nodes)
    demand = msgspec.structs.replace(demand, request=request)
    return msgspec.structs.replace(wanted, demand=demand)
