# SPDX-License-Identifier: MIT
"""When a member has nothing more to do: what several algorithms end it by."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from burst.config.convert import Table
from burst_ensemble.algorithm import MemberView, Memory

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


class Idle(msgspec.Struct, frozen=True):
    """Whether it is to end, and what is to be remembered."""

    end: bool
    why: str
    memory: dict[str, Any]


def decide_end(
    view: MemberView, memory: Memory, now: float, options: IdleOptions
) -> Idle:
    """Return whether a member was idle for long enough.

    While its first nodes boot it is not: jobs come once they are online. While later
    ones boot in place of nodes that were lost, or whose lease has ended, it stays idle:
    else it would be given nodes again and again, and never end. A job that came and
    ended between two looks was work: the idleness begins anew after it.
    """
    first = view.tally.finished == 0 and "idle_since" not in memory
    if not is_idle(view, first=first) or is_yes(options.disable_termination):
        return Idle(False, "", {})
    begun = since(memory, "idle_since", now)
    jobs = view.tally.events.get("submit", 0)
    if jobs != memory.get("jobs", jobs):
        begun = now
    if now - begun < options.terminate_checks * view.check:
        return Idle(False, "", {"idle_since": begun, "jobs": jobs})
    return Idle(True, f"it was idle for {now - begun:.0f} s", {})


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
