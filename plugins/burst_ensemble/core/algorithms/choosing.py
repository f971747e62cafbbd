# SPDX-License-Identifier: MIT
"""Which jobs of the file come next: what several algorithms submit by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberView,
    OptionProblem,
    shuffled,
)

JobOrder = Literal["", "random", "ascending", "descending"]
"""As the file has them, drawn at random, by their nodes from few or from many."""


def too_many_failed(view: MemberView, target: int | None, successes: int) -> bool:
    """Return whether it is given up to have so many successes.

    It is once `target` jobs have failed; 0: never. None: ten times as many as are to
    succeed, and at least 100. Else jobs that all fail, as of a path that is not there,
    would be paid for without end. A job that ended before it ran counts.
    """
    if target is None:
        target = max(100, 10 * successes) if successes else 0
    return 0 < target <= max(view.tally.failed, view.tally.events.get("exception", 0))


def room_for_jobs(view: MemberView) -> int:
    """Return how many nodes the member could yet give to jobs, by growing, too."""
    return max(0, view.most - view.nodes_busy - view.nodes_waited_for)


def usable(view: MemberView) -> list[JobGroup]:
    """Return the groups whose jobs the member could run, once it has grown."""
    return [group for group in view.jobs if group.nodes <= view.most]


def all_left(groups: Iterable[JobGroup]) -> list[JobGroup]:
    """Return a group for each job that the file asks for and that is left."""
    return [group for group in groups for _ in range(group.left or 0)]


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


def fitting(jobs: Iterable[JobGroup], nodes: int, most: int = SUBMIT_MOST) -> list[str]:
    """Return the names of jobs, in turn, that all run at once on so many nodes."""
    found: list[str] = []
    for job in jobs:
        if len(found) == most:
            break
        if job.nodes <= nodes:
            nodes -= job.nodes
            found.append(job.name)
    return found


def submitted(view: MemberView) -> int:
    """Return how many jobs were given out so far: it tells one draw from the next."""
    return sum(group.submitted for group in view.jobs)


def never_submitted(view: MemberView, name: str) -> list[OptionProblem]:
    """Return what is wrong with jobs of which the file says no count."""
    endless = [group.name for group in view.jobs if group.left is None]
    return [
        OptionProblem(
            "",
            f"jobs {group} have count 0, of which {name} submits none",
            "give them a count, or use more-jobs, workload-success or triggers",
        )
        for group in endless
    ]
