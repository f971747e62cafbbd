# SPDX-License-Identifier: MIT
"""`cost`: jobs that all members share go where they cost least.

A job's cost in a member is its nodes, times their price, times how long such jobs ran
there. All members that take part must have this algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec
from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
)


class CostOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Its options."""

    cost_ratio: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    """If the cheapest member is full, this one takes a job that costs at most this many
    times as much here."""


class Cost:
    """Submits jobs; name `workload-demand` with `submit = "no"` beside it.

    `workload-demand` ends a member that is idle. Let an expensive member be idle for
    long (`terminateChecks`) if it is to wait until the cheap ones are full.
    """

    Options = CostOptions

    def __init__(self, options: CostOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,  # noqa: ARG002  the same
    ) -> MemberDecision:
        """Return the member's own jobs, then shared ones that are to run here."""
        if view.unconfirmed:
            return MemberDecision()
        usable = [group for group in view.jobs if group.nodes <= view.most]
        names = [
            group.name
            for group in usable
            if not group.shared
            for _ in range(group.left or 0)
        ]
        if not names:
            room = view.most - view.nodes_busy - view.nodes_waited_for
            for group in usable:
                if group.shared and self._takes(view, group):
                    count = max(0, min(group.left or 0, room // group.nodes))
                    names += [group.name] * count
                    room -= count * group.nodes
        return MemberDecision(submit=tuple(names[:SUBMIT_MOST]))

    def _takes(self, view: MemberView, group: JobGroup) -> bool:
        """Return whether no other member that has nodes for such a job is cheaper."""
        known = {
            peer.name: peer.durations[group.name]
            for peer in view.peers
            if group.name in peer.durations
        }
        if group.tally.success:
            known[view.name] = group.tally.duration.mean
        mine = view.price * _expected(known, view.name)
        others = [
            (peer.price * _expected(known, peer.name), peer.room >= group.nodes)
            for peer in view.peers
            if peer.most >= group.nodes
        ]
        if any(cost < mine and has_room for cost, has_room in others):
            return False
        least = min((cost for cost, _ in others), default=math.inf)
        return mine <= least * self._options.cost_ratio


def _expected(known: Mapping[str, float], name: str) -> float:
    """Return how long such a job runs in a member.

    If none has ended there yet, it is the shortest of all members, so that it is tried.
    """
    return known.get(name, min(known.values(), default=1.0))
