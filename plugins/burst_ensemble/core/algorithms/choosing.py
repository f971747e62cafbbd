# SPDX-License-Identifier: MIT
"""In which order jobs of the file come: what several algorithms submit by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from burst_ensemble.algorithm import SUBMIT_MOST, JobGroup, MemberView, shuffled

JobOrder = Literal["", "random", "ascending", "descending"]
"""As the file has them, drawn at random, by their nodes from few or from many."""


def usable(view: MemberView) -> list[JobGroup]:
    """Return the groups whose jobs the member could run, once it has grown."""
    return [group for group in view.jobs if group.nodes <= view.most]


def in_order(
    jobs: Sequence[JobGroup], order: JobOrder, *seed: str | float
) -> list[JobGroup]:
    """Return the jobs in that order; those of equal size as the file has them.

    Of a random order only as many as are submitted at once.
    """
    if order == "random":
        return shuffled(jobs, *seed, most=SUBMIT_MOST)
    if order:
        backwards = order == "descending"
        return sorted(jobs, key=lambda job: job.nodes, reverse=backwards)
    return list(jobs)


def submitted(view: MemberView) -> int:
    """Return how many jobs were given out so far: it tells one draw from the next."""
    return sum(group.submitted for group in view.jobs)
