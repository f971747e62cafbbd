# SPDX-License-Identifier: MIT
"""`workload-success`: runs jobs until so many have succeeded.

As many jobs are active as may yet be needed, and fit. The member grows for them, and
shrinks only once enough jobs run. It ends when enough have succeeded and those that run
have ended, or when there are no more jobs.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import Annotated

import msgspec

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
)
from burst_ensemble.core.algorithms.choosing import (
    all_left,
    fitting,
    room_for_jobs,
    too_many_failed,
    usable,
)
from burst_ensemble.core.algorithms.idling import decide_end
from burst_ensemble.core.algorithms.scaling import ScaleOptions, decide_size


class SuccessOptions(ScaleOptions, frozen=True, rename="camel", kw_only=True):
    """Its options: those of scaling and of idling, and these."""

    success_target: Annotated[int, msgspec.Meta(ge=1)]
    """How many jobs are to succeed."""
    failure_target: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """It gives up once so many have failed; 0: never. Default: ten times as many as are
    to succeed, at least 100."""
    at_once: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many jobs are active at once, at most; 0: as many as fit in `max` nodes."""


class WorkloadSuccess:
    """See the module's docstring."""

    Options = SuccessOptions

    def __init__(self, options: SuccessOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        options, tally = self._options, view.tally
        runs = view.queue.run + view.queue.cleanup
        if tally.success >= options.success_target and not runs:
            return MemberDecision(end=True, why=f"{tally.success} jobs have succeeded")
        if too_many_failed(view, options.failure_target, options.success_target):
            return MemberDecision(end=True, why=f"{tally.failed} jobs have failed")
        enough = tally.success + view.queue.active >= options.success_target
        size = decide_size(view, memory, now, options)
        idle = decide_end(view, memory, now, options)
        shrinks = size.nodes is not None and size.nodes < view.nodes
        return MemberDecision(
            nodes=None if shrinks and not enough else size.nodes,
            submit=tuple(self._jobs(view)),
            end=idle.end,
            memory={**size.memory, **idle.memory},
            why=idle.why or size.why,
        )

    def _jobs(self, view: MemberView) -> list[str]:
        options, active = self._options, view.queue.active
        most = options.success_target - view.tally.success - active
        if options.at_once:
            most = min(most, options.at_once - active)
        if most <= 0 or view.unconfirmed:
            return []
        endless: list[JobGroup] = [
            group for group in usable(view) if group.left is None
        ]
        line = [*all_left(usable(view)), *islice(cycle(endless), SUBMIT_MOST)]
        return fitting(line, room_for_jobs(view), min(most, SUBMIT_MOST))
