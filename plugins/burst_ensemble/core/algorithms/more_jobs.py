# SPDX-License-Identifier: MIT
"""`more-jobs`: submits jobs of the file whenever the queue runs dry.

It does not size the member: name `workload-demand` with `submit: no` beside it, which
also ends the member once nothing more comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import msgspec

from burst.config.convert import Seconds, Table
from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
    OptionProblem,
)
from burst_ensemble.core.algorithms.common import (
    JobOrder,
    in_order,
    submitted,
    usable,
)

_Number = Annotated[int, msgspec.Meta(ge=0)]


class MoreJobsOptions(Table, frozen=True, rename="camel"):
    """Its options."""

    below: Annotated[int, msgspec.Meta(ge=1)] = 1
    """More are submitted once fewer jobs than this are active."""
    batch: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 1
    """How many at once."""
    jobs: tuple[str, ...] = ()
    """Names of `jobs` of the file from which they are taken; default: all."""
    order: JobOrder = ""
    """In which order one of each is taken in turn."""
    count: _Number = 0
    """Most jobs that it submits; 0: as many as the file has."""
    success_target: _Number = 0
    """It stops submitting once this number of jobs has succeeded; 0: no limit."""
    failure_target: _Number | None = None
    """It stops submitting once this number of jobs has failed; 0: no limit. Default:
    with `successTarget` ten times as many, at least 100."""
    most_time: Seconds = Seconds(math.inf)
    """It stops submitting at this time since the member began."""
    seed: int = 0
    """Seed of what is drawn at random."""


class MoreJobs:
    """See the module's docstring."""

    Options = MoreJobsOptions

    def __init__(self, options: MoreJobsOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,
    ) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        most = self._most(view, now)
        groups = self._groups(view)
        seed = (self._options.seed, view.name, submitted(view))
        names: list[str] = []
        taken = dict.fromkeys((group.name for group in groups), 0)
        while len(names) < most:
            # One of each in turn, so that none waits for the last of another.
            line = [g for g in groups if g.left is None or taken[g.name] < g.left]
            if not line:
                break
            for group in in_order(line, self._options.order, *seed, len(names)):
                names.append(group.name)
                taken[group.name] += 1
        return MemberDecision(submit=tuple(names[:most]))

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return which names no group has, and whether it would never end."""
        known = [group.name for group in view.jobs]
        found = [
            OptionProblem(
                f"jobs.{place}", f"there are no jobs {name}", f"one of {known}"
            )
            for place, name in enumerate(self._options.jobs)
            if name not in known
        ]
        options = self._options
        ends = options.count or options.success_target or options.most_time < math.inf
        if not ends and any(group.left is None for group in self._groups(view)):
            found.append(
                OptionProblem(
                    "count",
                    "it would submit jobs without end, as count of the jobs is 0",
                    "set count, successTarget or mostTime",
                )
            )
        return found

    def _groups(self, view: MemberView) -> list[JobGroup]:
        names = self._options.jobs
        return [group for group in usable(view) if not names or group.name in names]

    def _most(self, view: MemberView, now: float) -> int:
        """Return how many jobs may be submitted now."""
        options = self._options
        if (
            view.unconfirmed
            or view.queue.active >= options.below
            or now - view.started >= options.most_time
            or 0 < options.success_target <= view.tally.success
            or _too_many_failed(view, options.failure_target, options.success_target)
        ):
            return 0
        if not options.count:
            return options.batch
        given = sum(group.submitted for group in self._groups(view))
        return min(options.batch, max(0, options.count - given))


def _too_many_failed(view: MemberView, target: int | None, successes: int) -> bool:
    """Return whether it is given up to have so many successes.

    It is once `target` jobs have failed; 0: never. None: ten times as many as are to
    succeed, and at least 100. Else jobs that all fail, as of a path that is not there,
    would be paid for without end. A job that ended before it ran counts.
    """
    if target is None:
        target = max(100, 10 * successes) if successes else 0
    return 0 < target <= max(view.tally.failed, view.tally.events.get("exception", 0))
