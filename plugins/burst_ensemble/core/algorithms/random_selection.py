# SPDX-License-Identifier: MIT
"""`random-selection`: jobs are chosen at random, some at a time; nodes follow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    MemberDecision,
    MemberView,
    Memory,
    OptionProblem,
    shuffled,
)
from burst_ensemble.core.algorithms.choosing import (
    all_left,
    never_submitted,
    submitted,
    usable,
)
from burst_ensemble.core.algorithms.idling import decide_end
from burst_ensemble.core.algorithms.scaling import ScaleOptions, decide_size


class RandomOptions(ScaleOptions, frozen=True, rename="camel"):
    """Its options: those of scaling and of idling, and these."""

    select: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 1
    """How many jobs are chosen at a time: whenever none waits."""


class RandomSelection:
    """See the module's docstring."""

    Options = RandomOptions

    def __init__(self, options: RandomOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        size = decide_size(view, memory, now, self._options)
        idle = decide_end(view, memory, now, self._options)
        chosen: list[str] = []
        if not view.queue.pending and not view.unconfirmed:
            seed = (self._options.seed, view.name, submitted(view))
            left = all_left(usable(view))
            drawn = shuffled(left, *seed, most=self._options.select)
            chosen = [job.name for job in drawn]
        return MemberDecision(
            nodes=size.nodes,
            submit=tuple(chosen),
            end=idle.end,
            memory={**size.memory, **idle.memory},
            why=idle.why or size.why,
        )

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return which jobs it would never submit."""
        return never_submitted(view, "random-selection")
