# SPDX-License-Identifier: MIT
"""What several algorithms share: in which order jobs of the file come, and when a
member has nothing more to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from burst.config.convert import Table
from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
    shuffled,
)

Checks = Annotated[int, msgspec.Meta(ge=1)]
YesNo = bool | Literal["yes", "no"]
"""The Ensemble Operator's options are texts or numbers, so that it writes "yes"."""


class IdleOptions(Table, frozen=True, rename="camel"):
    """Options of all algorithms that end an idle member."""

    terminate_checks: Checks = 10
    """How many checks a member must be idle before it ends: it has nodes, and no job is
    active."""
    disable_termination: YesNo = "no"
    """Whether an idle member stays, at its `min`."""


def decide_end(
    view: MemberView, memory: Memory, now: float, options: IdleOptions
) -> MemberDecision:
    """Return whether a member was idle for long enough, and so ends.

    While its first nodes boot it is not: jobs come once they are online. While later
    ones boot in place of nodes that were lost, or whose lease has ended, it stays idle:
    else it would be given nodes again and again, and never end. A job that came and
    ended between two looks was work: the idleness begins anew after it.
    """
    first = view.tally.finished == 0 and "idle_since" not in memory
    if not is_idle(view, first=first) or is_yes(options.disable_termination):
        return MemberDecision()
    begun = since(memory, "idle_since", now)
    jobs = view.tally.events.get("submit", 0)
    if jobs != memory.get("jobs", jobs):
        begun = now
    if now - begun < options.terminate_checks * view.check:
        return MemberDecision(memory={"idle_since": begun, "jobs": jobs})
    return MemberDecision(end=True, why=f"it was idle for {now - begun:.0f} s")


def is_idle(view: MemberView, *, first: bool) -> bool:
    """Whether no job is active, though jobs could run.

    `first` is whether its first nodes may yet boot.
    """
    has_nodes = view.nodes_up > 0 or view.nodes == 0 or not first
    return has_nodes and not view.unconfirmed and view.queue.active == 0


def is_yes(value: YesNo) -> bool:
    """Return what a yes or no of the file means."""
    return value is True or value == "yes"


def since(memory: Memory, key: str, now: float) -> float:
    """Return a time that is remembered; now where it is not, or lies ahead."""
    return min(now, float(memory.get(key, now)))


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
