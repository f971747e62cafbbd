# SPDX-License-Identifier: MIT
"""`cost`: jobs that all members share go where they cost least.

A job's cost in a member is its nodes, times their price, times how long such jobs ran
there. All members that are to take part have this algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
    OptionProblem,
)
from burst_ensemble.core.algorithms.choosing import (
    all_left,
    fitting,
    never_submitted,
    room_for_jobs,
    usable,
)
from burst_ensemble.core.algorithms.idling import decide_end
from burst_ensemble.core.algorithms.scaling import ScaleOptions, decide_size


class CostOptions(ScaleOptions, frozen=True, rename="camel"):
    """Its options: those of scaling and of idling, and these."""

    cost_ratio: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    """Where the cheapest member is full, this one takes a job if it costs at most so
    many times as much here."""


class Cost:
    """See the module's docstring."""

    Options = CostOptions

    def __init__(self, options: CostOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        size = decide_size(view, memory, now, self._options)
        idle = decide_end(view, memory, now, self._options)
        pool = [group for group in usable(view) if group.shared]
        # While shared jobs are left it may yet be needed: the cheaper may be full.
        ends = idle.end and not any(group.left for group in pool)
        own = [group for group in usable(view) if not group.shared]
        shared = [group for group in pool if self._takes(view, group)]
        names = [job.name for job in all_left(own)]
        if not names:
            names = fitting(all_left(shared), room_for_jobs(view))
        return MemberDecision(
            nodes=size.nodes,
            submit=() if view.unconfirmed else tuple(names[:SUBMIT_MOST]),
            end=ends,
            memory={**size.memory, **idle.memory},
            why=idle.why if ends else size.why,
        )

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return which jobs it would never submit."""
        return never_submitted(view, "cost")

    def _takes(self, view: MemberView, group: JobGroup) -> bool:
        """Whether no other member with room for such a job is cheaper."""
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

    Where none has ended yet it is taken to be the shortest of all, so that it is tried.
    """
    return known.get(name, min(known.values(), default=1.0))
