# SPDX-License-Identifier: MIT
"""`workload-demand`: nodes follow the queue.

All jobs of the file are submitted when the member is made. While jobs wait it grows,
when nodes are free for a while it shrinks, and when all is done it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    MemberDecision,
    MemberView,
    Memory,
    OptionProblem,
)
from burst_ensemble.core.algorithms.choosing import (
    JobOrder,
    all_left,
    fitting,
    in_order,
    never_submitted,
    room_for_jobs,
    submitted,
    usable,
)
from burst_ensemble.core.algorithms.idling import YesNo, decide_end, is_yes
from burst_ensemble.core.algorithms.scaling import ScaleOptions, decide_size


class DemandOptions(ScaleOptions, frozen=True, rename="camel"):
    """Its options: those of scaling and of idling, and these."""

    order: JobOrder = "random"
    """In which order jobs are submitted: "random", "ascending" or "descending" by their
    nodes, "" as the file has them."""
    submit: YesNo = "yes"
    """Whether it submits jobs: not where another algorithm of the member does."""


class WorkloadDemand:
    """See the module's docstring."""

    Options = DemandOptions

    def __init__(self, options: DemandOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done (`burst_ensemble.algorithm.Algorithm`)."""
        size = decide_size(view, memory, now, self._options)
        idle = decide_end(view, memory, now, self._options)
        return MemberDecision(
            nodes=size.nodes,
            submit=tuple(self._jobs(view)),
            end=idle.end,
            memory={**size.memory, **idle.memory},
            why=idle.why or size.why,
        )

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return which jobs it would never submit."""
        if not is_yes(self._options.submit):
            return []
        return never_submitted(view, "workload-demand")

    def _jobs(self, view: MemberView) -> list[str]:
        """Return all own jobs, and of shared ones as many as it can run."""
        if not is_yes(self._options.submit) or view.unconfirmed:
            return []
        seed = (self._options.seed, view.name, submitted(view))
        jobs = in_order(all_left(usable(view)), self._options.order, *seed)
        own = [job.name for job in jobs if not job.shared]
        shared = (job for job in jobs if job.shared)
        taken = fitting(shared, 0 if own else room_for_jobs(view))
        return [*own, *taken][:SUBMIT_MOST]
