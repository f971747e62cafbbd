# SPDX-License-Identifier: MIT
"""`select-fastest-runtime`, `select-longest-runtime`: jobs by how long such jobs ran.

A job is expected to run as long as the mean of its entry of `jobs` in this member.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
)


class RuntimeOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Their options."""

    at_once: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 2
    """How many jobs are active at once."""
    minimum: Annotated[int, msgspec.Meta(ge=1)] = 3
    """How many jobs of each group must have ended before expected runtimes decide."""


class FastestRuntime:
    """The jobs that are expected to end first come first.

    The member grows at once by what they need. Name `workload-demand` with `submit =
    "no"` behind it, which shrinks and ends the member.
    """

    Options = RuntimeOptions
    _sign = 1

    def __init__(self, options: RuntimeOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,  # noqa: ARG002  the same
    ) -> MemberDecision:
        """Return the jobs that come next, and the size with which they fit."""
        chosen = self._choose(view)
        coming = sum(job.nodes for job in chosen)
        needed = min(view.nodes_busy + view.nodes_waited_for + coming, view.most)
        grows = needed > view.nodes
        return MemberDecision(
            nodes=needed if grows else None,
            submit=tuple(job.name for job in chosen),
            why=f"the jobs that are chosen need {needed} nodes" if grows else "",
        )

    def _choose(self, view: MemberView) -> list[JobGroup]:
        most = 0 if view.unconfirmed else self._options.at_once - view.queue.active
        taken = dict.fromkeys((group.name for group in view.jobs), 0)
        chosen: list[JobGroup] = []
        while len(chosen) < most:
            line = [
                group
                for group in view.jobs
                if group.nodes <= view.most and (group.left or 0) > taken[group.name]
            ]
            if not line:
                break
            chosen.append(self._next(line, taken))
            taken[chosen[-1].name] += 1
        return chosen

    def _next(self, line: list[JobGroup], taken: dict[str, int]) -> JobGroup:
        """Return the next job's group: that with fewest jobs, until all are known."""
        if any(group.tally.duration.count < self._options.minimum for group in line):
            return min(line, key=lambda group: group.submitted + taken[group.name])
        return min(line, key=lambda group: self._sign * group.tally.duration.mean)


class LongestRuntime(FastestRuntime):
    """The jobs that are expected to end last come first."""

    _sign = -1
