# SPDX-License-Identifier: MIT
"""`stop`: ends a member. It neither sizes the member nor submits jobs."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from burst.config.convert import Seconds
from burst.model.fsd import format_fsd
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.core.algorithms.common import IdleOptions, decide_end, have

_Number = Annotated[int, msgspec.Meta(ge=0)]


class StopOptions(IdleOptions, frozen=True, rename="camel"):
    """The options of `stop`: those of idling, and these. The first condition that holds
    ends the member.
    """

    success_target: _Number = 0
    """The member ends when this number of jobs has succeeded; 0: never."""
    failure_target: _Number = 0
    """The member ends when this number of jobs has failed; 0: never."""
    failure_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The member ends when this part of its finished jobs, ten or more, has failed; 0:
    never."""
    most_time: Seconds = Seconds(math.inf)
    """The member ends this long after it began."""
    most_money: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The member ends when it has cost this amount; 0: never."""


class Stop:
    """See the module's docstring."""

    Options = StopOptions

    def __init__(self, options: StopOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the decision (`burst_ensemble.algorithm.Algorithm`)."""
        why = self._reached(view, now)
        idle = decide_end(view, memory, now, self._options)
        return MemberDecision(
            end=bool(why) or idle.end, why=why or idle.why, memory=idle.memory
        )

    def _reached(self, view: MemberView, now: float) -> str:
        options, tally = self._options, view.tally
        if 0 < options.success_target <= tally.success:
            return f"{have(tally.success, 'job')} succeeded"
        if 0 < options.failure_target <= tally.failed:
            return f"{have(tally.failed, 'job')} failed"
        if options.failure_share and tally.finished >= 10:
            share = tally.failed / tally.finished
            if share >= options.failure_share:
                return f"{100 * share:.0f} % of {tally.finished} jobs have failed"
        if now - view.started >= options.most_time:
            return f"it has existed for {format_fsd(now - view.started)}"
        if 0 < options.most_money <= view.spent:
            return f"it has cost {view.spent:.2f}"
        return ""
