# SPDX-License-Identifier: MIT
"""`select-fastest-runtime`, `select-longest-runtime`: jobs by how long such jobs ran.

The model of a group of jobs is the mean of those that ended in this member. Until each
group has enough of them, groups get jobs in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from burst_ensemble.core.algorithms.choosing import never_submitted, usable
from burst_ensemble.core.algorithms.idling import decide_end
from burst_ensemble.core.algorithms.scaling import (
    ScaleOptions,
    shrink,
    waits_for_nodes,
)


class RuntimeOptions(ScaleOptions, frozen=True, rename="camel"):
    """Their options: those of scaling and of idling, and these. The member grows at
    once by what the chosen jobs need.
    """

    at_once: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 2
    """How many jobs are active at once."""
    minimum: Annotated[int, msgspec.Meta(ge=1)] = 3
    """Of each group as many jobs must have ended before the model chooses."""


class FastestRuntime:
    """The jobs that are expected to end first come first."""

    Options = RuntimeOptions
    _sign = 1

    def __init__(self, options: RuntimeOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        chosen = self._choose(view)
        idle = decide_end(view, memory, now, self._options)
        coming = sum(job.nodes for job in chosen)
        needed = view.nodes_busy + view.nodes_waited_for + coming
        nodes, why, memories = None, "", dict(idle.memory)
        if needed > view.nodes < view.most:
            nodes = min(needed, view.most)
            why = f"the jobs that are chosen need {nodes} nodes"
        elif not waits_for_nodes(view) and not chosen:
            size = shrink(view, memory, now, self._options)
            nodes, why = size.nodes, size.why
            memories.update(size.memory)
        return MemberDecision(
            nodes=nodes,
            submit=tuple(job.name for job in chosen),
            end=idle.end,
            memory=memories,
            why=idle.why or why,
        )

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return which jobs it would never submit."""
        return never_submitted(view, "it")

    def _choose(self, view: MemberView) -> list[JobGroup]:
        most = 0 if view.unconfirmed else self._options.at_once - view.queue.active
        taken = dict.fromkeys((group.name for group in view.jobs), 0)
        chosen: list[JobGroup] = []
        while len(chosen) < most:
            line = [
                group for group in usable(view) if (group.left or 0) > taken[group.name]
            ]
            if not line:
                break
            chosen.append(self._next(line, taken))
            taken[chosen[-1].name] += 1
        return chosen

    def _next(self, line: list[JobGroup], taken: dict[str, int]) -> JobGroup:
        """Return the group of the next job: the fewest first, until all are known."""
        if any(group.tally.duration.count < self._options.minimum for group in line):
            return min(line, key=lambda group: group.submitted + taken[group.name])
        return min(line, key=lambda group: self._sign * group.tally.duration.mean)


class LongestRuntime(FastestRuntime):
    """The jobs that are expected to end last come first."""

    _sign = -1
