# SPDX-License-Identifier: MIT
"""`workload-success`: runs jobs until a number of them has succeeded."""

from __future__ import annotations

from typing import Annotated

import msgspec
from burst_ensemble.algorithm import SUBMIT_MOST, MemberDecision, MemberView, Memory


class SuccessOptions(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Its options."""

    success_target: Annotated[int, msgspec.Meta(ge=1)]
    """How many jobs are to succeed."""
    failure_target: Annotated[int, msgspec.Meta(ge=1)] = 100
    """It gives up once this many have failed. Otherwise jobs that all fail, such as by
    a missing path, would cost money without end."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=SUBMIT_MOST)] = SUBMIT_MOST
    """How many jobs are active at once, at most."""


class WorkloadSuccess:
    """Keeps as many jobs active as may still be needed and as fit.

    Name `workload-demand` with `submit = "no"` beside it, which sizes the member.
    """

    Options = SuccessOptions

    def __init__(self, options: SuccessOptions) -> None:
        self._options = options

    def decide(
        self,
        view: MemberView,
        memory: Memory,  # noqa: ARG002  what it asks is in the view
        now: float,  # noqa: ARG002  the same
    ) -> MemberDecision:
        """Return further jobs, or the end once those that run have ended."""
        options, tally = self._options, view.tally
        runs = view.queue.run + view.queue.cleanup
        if tally.success >= options.success_target and not runs:
            return MemberDecision(end=True, why=f"{tally.success} jobs have succeeded")
        # A job that ended before it ran has no finish.
        failed = max(tally.failed, tally.events.get("exception", 0))
        if failed >= options.failure_target:
            return MemberDecision(end=True, why=f"{failed} jobs have failed")
        return MemberDecision(submit=tuple(self._jobs(view)))

    def _jobs(self, view: MemberView) -> list[str]:
        options, active = self._options, view.queue.active
        most = min(options.success_target - view.tally.success, options.at_once)
        most = 0 if view.unconfirmed else most - active
        room = max(0, view.most - view.nodes_busy - view.nodes_waited_for)
        names: list[str] = []
        # Groups with a number of jobs in the file come before those without an end.
        for group in sorted(view.jobs, key=lambda group: group.left is None):
            left = most if group.left is None else group.left
            count = max(0, min(left, most - len(names), room // group.nodes))
            names += [group.name] * count
            room -= count * group.nodes
        return names
