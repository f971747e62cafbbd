# SPDX-License-Identifier: MIT
"""`random-selection`: jobs are chosen at random, some at a time."""

from __future__ import annotations

from typing import Annotated

import msgspec
from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    MemberDecision,
    MemberView,
    Memory,
    shuffled,
)


class RandomOptions(msgspec.Struct, frozen=True):
    """Its options."""

    select: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 1
    """How many jobs are chosen at a time: whenever none waits."""
    seed: int = 0
    """The seed of the random choice."""


class RandomSelection:
    """Submits jobs; name `workload-demand` beside it, which sizes and ends members."""

    Options = RandomOptions

    def __init__(self, options: RandomOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,  # noqa: ARG002  the same
    ) -> MemberDecision:
        """Return `select` random jobs of those that could run."""
        if view.queue.pending or view.unconfirmed:
            return MemberDecision()
        left = [
            group.name
            for group in view.jobs
            if group.nodes <= view.most
            for _ in range(group.left or 0)
        ]
        # It makes this draw differ from those before.
        submitted = sum(group.submitted for group in view.jobs)
        seed = (self._options.seed, view.name, submitted)
        drawn = shuffled(left, *seed, most=self._options.select)
        return MemberDecision(submit=tuple(drawn))
