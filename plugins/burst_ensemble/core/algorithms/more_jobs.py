# SPDX-License-Identifier: MIT
"""`more-jobs`: submits jobs of the file whenever the queue runs dry.

It does not size the member: name `workload-demand` with `submit: no` beside it, which
also ends the member when no more jobs come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import msgspec

from burst.config.convert import Table
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


class MoreJobsOptions(Table, frozen=True, rename="camel"):
    """The options of `more-jobs`."""

    retired: ClassVar[Mapping[str, str]] = {
        "count": "set count of the jobs",
        **dict.fromkeys(
            ("failureTarget", "mostTime"), "also list the algorithm stop, which has it"
        ),
    }

    below: Annotated[int, msgspec.Meta(ge=1)] = 1
    """More jobs are submitted when fewer jobs than this are active."""
    batch: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = 1
    """How many jobs are submitted at once."""
    jobs: tuple[str, ...] = ()
    """Names of the entries of `jobs` that jobs are taken from; default: all."""
    order: JobOrder = ""
    """The order in which one job of each entry is taken in turn."""
    success_target: Annotated[int, msgspec.Meta(ge=0)] = 0
    """It stops submitting once this number of jobs has succeeded, or ten times as many
    and at least 100 have failed; 0: no limit."""
    seed: int = 0
    """Seed of the random numbers."""


class MoreJobs:
    """See the module's docstring."""

    Options = MoreJobsOptions
    never_ends = True
    """Whether no decision ends the member."""

    def __init__(self, options: MoreJobsOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,  # noqa: ARG002  the same
    ) -> MemberDecision:
        """Return the decision (`burst_ensemble.algorithm.Algorithm`)."""
        most = self._most(view)
        groups = self._groups(view)
        seed = (self._options.seed, view.name, submitted(view))
        names: list[str] = []
        taken = dict.fromkeys((group.name for group in groups), 0)
        while len(names) < most:
            # One of each in turn, so that no group waits for the last job of another.
            line = [g for g in groups if g.left is None or taken[g.name] < g.left]
            if not line:
                break
            for group in in_order(line, self._options.order, *seed, len(names)):
                names.append(group.name)
                taken[group.name] += 1
        return MemberDecision(submit=tuple(names[:most]))

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return names that no group has, and options that would submit without end."""
        known = [group.name for group in view.jobs]
        found = [
            OptionProblem(
                f"jobs.{place}", f"there are no jobs {name}", f"one of {known}"
            )
            for place, name in enumerate(self._options.jobs)
            if name not in known
        ]
        endless = [group.name for group in self._groups(view) if group.left is None]
        if endless and not self._options.success_target:
            found.append(
                OptionProblem(
                    "successTarget",
                    f"it would submit jobs {endless[0]} without end, as their count"
                    " is 0",
                    "set it, or a count of the jobs",
                )
            )
        return found

    def _groups(self, view: MemberView) -> list[JobGroup]:
        names = self._options.jobs
        return [group for group in usable(view) if not names or group.name in names]

    def _most(self, view: MemberView) -> int:
        """Return how many jobs may be submitted now.

        Once too many jobs have failed, including those that ended before they ran, it
        gives up on the success target: jobs that all fail, because of a wrong path for
        instance, would cost money without end.
        """
        target, tally = self._options.success_target, view.tally
        failed = max(tally.failed, tally.events.get("exception", 0))
        if (
            view.unconfirmed
            or view.queue.active >= self._options.below
            or 0 < target <= tally.success
            or (target and failed >= max(100, 10 * target))
        ):
            return 0
        return self._options.batch
