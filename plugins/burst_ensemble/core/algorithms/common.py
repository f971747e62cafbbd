# SPDX-License-Identifier: MIT
"""Shared by several algorithms: the order of the file's jobs, and when an idle member
ends.
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
"""The Ensemble Operator's options are texts or numbers, so its files have "yes"."""


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
    """Return a decision that ends the member if it was idle for long enough.

    A member is not idle while its first nodes boot: jobs come once they are online. It
    stays idle while later nodes boot in place of nodes that were lost or whose lease
    has ended: otherwise it would get nodes again and again, and never end. The idle
    time starts anew after a job that came and ended between two checks.
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
    return MemberDecision(end=True, why=f"it has been idle for {now - begun:.0f} s")


def is_idle(view: MemberView, *, first: bool) -> bool:
    """Tell whether no job is active although jobs could run.

    `first` tells whether the member's first nodes may still boot.
    """
    has_nodes = view.nodes_up > 0 or view.nodes == 0 or not first
    return has_nodes and not view.unconfirmed and view.queue.active == 0


def is_yes(value: YesNo) -> bool:
    """Tell whether a yes or no of the file means yes."""
    return value is True or value == "yes"


def since(memory: Memory, key: str, now: float) -> float:
    """Return a remembered time; `now` if there is none, or if it is in the future."""
    return min(now, float(memory.get(key, now)))


JobOrder = Literal["", "random", "ascending", "descending"]
"""The order of jobs: "" is that of the file, "random" is drawn, "ascending" and
"descending" sort by the number of nodes.
"""


def usable(view: MemberView) -> list[JobGroup]:
    """Return the groups whose jobs the member could run, once it has grown."""
    return [group for group in view.jobs if group.nodes <= view.most]


def in_order(
    jobs: Sequence[JobGroup], order: JobOrder, *seed: str | float
) -> list[JobGroup]:
    """Return the jobs in that order. Jobs of equal size keep the order of the file.

    A random order has only SUBMIT_MOST jobs, the most that are submitted at once.
    """
    if order == "random":
        return shuffled(jobs, *seed, most=SUBMIT_MOST)
    if order:
        backwards = order == "descending"
        return sorted(jobs, key=lambda job: job.nodes, reverse=backwards)
    return list(jobs)


def have(number: int, word: str) -> str:
    """Return the beginning of a sentence: "1 job has", "2 jobs have"."""
    return f"{number} {word} has" if number == 1 else f"{number} {word}s have"


def submitted(view: MemberView) -> int:
    """Return how many jobs were submitted so far, as a seed that changes."""
    return sum(group.submitted for group in view.jobs)
