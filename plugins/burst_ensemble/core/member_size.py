# SPDX-License-Identifier: MIT
"""Makes a member larger or smaller: by its bursts' sizes, or by their number."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.config import Settings
from burst.core.burst_actions import take_down
from burst.core.commands import (
    describe_request,
    make_requested_burst,
    request_nodes,
)
from burst.core.plan.demands import Demand
from burst.core.records import Records, Transaction
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.tick import TickResult, joined, result_of
from burst.core.world import World
from burst.errors import BurstError
from burst.model.burst import Burst, Tag
from burst.model.ranks import format_hostlist
from burst_ensemble.config.spec import MemberSpec
from burst_ensemble.core.intents import ResizeMember
from burst_ensemble.core.read_members import bursts_of, usable_bursts, wanted_nodes
from burst_ensemble.core.stored import EnsembleStart


class StepTime(NamedTuple):
    """By what a step changes bursts."""

    world: World
    settings: Settings
    now: float


class MemberResize:
    """Makes a member larger or smaller.

    Where its provider can resize a burst, one that is online is. Else, or where that
    cannot be, a member grows by further bursts in the rest of its rank slot, and
    shrinks by whole bursts on which nothing runs.
    """

    def __init__(
        self, member: MemberSpec, of: Tag, start: EnsembleStart, to: ResizeMember
    ) -> None:
        self._member, self._of = member, of
        self._slot = format_hostlist(start.slots.get(member.name, ()))
        self._nodes, self._why = to.nodes, to.why

    def apply(self, records: Records, at: StepTime) -> tuple[TickResult, str]:
        """Return what is changed, and why it is not as large as it should be."""
        live = usable_bursts(records, self._of)
        more = self._nodes - sum(map(wanted_nodes, live))
        if more <= 0:
            return self._shrink(records, -more, at), ""
        # Nodes that leave are paid until they are gone.
        paid = sum(burst.lease.nodes for burst in bursts_of(records, self._of))
        more = min(more, self._member.max - paid)
        if more <= 0:
            return result_of(
                Transaction(records, at.now)
            ), "nodes that it gives back are not gone yet"
        return self._grow(records, more, at)

    def _grow(
        self, records: Records, more: int, at: StepTime
    ) -> tuple[TickResult, str]:
        """Have a burst grow, or request one; of fewer nodes where need be."""
        nodes, why = more, ""
        while nodes:
            for burst in usable_bursts(records, self._of):
                grown = self._resize(records, burst, nodes, at)
                if grown is not None:
                    return grown, why
            demand = self._demand(nodes)
            made, decision = make_requested_burst(
                records, at.world, at.settings, demand, at.now
            )
            if made.records.bursts.keys() != records.bursts.keys():
                return made, why
            why = why or describe_request(decision, demand)
            nodes //= 2
        return made, why

    def _demand(self, nodes: int) -> Demand:
        demand = request_nodes(nodes, self._member.provider, self._slot)
        wanted = msgspec.structs.replace(demand.preferences, offer=self._member.offer)
        return msgspec.structs.replace(
            demand, preferences=wanted, tag=self._of, image=self._member.image
        )

    def _shrink(self, records: Records, fewer: int, at: StepTime) -> TickResult:
        """Take down whole bursts, the newest first; then have one shrink."""
        tx = Transaction(records, at.now)
        for burst in reversed(usable_bursts(records, self._of)):
            if burst.lease.nodes <= fewer and not burst.jobs:
                take_down(tx, burst, self._why)
                fewer -= burst.lease.nodes
        result = result_of(tx)
        for burst in reversed(usable_bursts(result.records, self._of)):
            if 0 < fewer < wanted_nodes(burst):
                shrunk = self._resize(result.records, burst, -fewer, at)
                if shrunk is not None:
                    return joined([result, shrunk])
        return result

    def _resize(
        self, records: Records, burst: Burst, more: int, at: StepTime
    ) -> TickResult | None:
        """Have a burst grow or shrink; None where that cannot be now."""
        wanted = WantedSize(burst.id, wanted_nodes(burst) + more, self._why)
        try:
            return resize_burst(records, at.world, at.settings, wanted, at.now)[0]
        except BurstError:
            return None
