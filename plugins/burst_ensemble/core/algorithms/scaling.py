# SPDX-License-Identifier: MIT
"""Sizes by the queue: what several algorithms do about growing and shrinking.

It remembers since when jobs wait, and since when how many nodes are free.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from burst_ensemble.algorithm import MemberView, Memory, draw
from burst_ensemble.core.algorithms.idling import Checks, IdleOptions, since


class ScaleOptions(IdleOptions, frozen=True, rename="camel"):
    """Options of all algorithms that size a member by its queue, and end it idle."""

    scale_checks: Checks = 5
    """For so many checks jobs must wait before the member grows. A check is
    `checkSeconds` of the file."""
    scale_up_checks: Checks | None = None
    """The same, of growing only; default: `scaleChecks`."""
    scale_down_checks: Checks | None = None
    """For so many checks nodes must be free before they are given back; default: two
    more than `scaleChecks`."""
    scale_up_strategy: Literal[
        "nextJob", "smallestJob", "largestJob", "randomJob", "total"
    ] = "nextJob"
    """By which of the waiting jobs it grows, so that this one fits: the next, the
    smallest, the largest, any. `total`: so that all fit at once."""
    scale_down_strategy: Literal["excess", "excessNodes"] = "excess"
    """By how many nodes it shrinks: by those that were free all the time. Both words
    mean the same."""
    seed: int = 0
    """What is drawn at random is drawn of this number."""

    def up_window(self, view: MemberView) -> float:
        """Return for how many seconds jobs must wait."""
        return (self.scale_up_checks or self.scale_checks) * view.check

    def down_window(self, view: MemberView) -> float:
        """Return for how many seconds nodes must be free."""
        return (self.scale_down_checks or self.scale_checks + 2) * view.check


class Sized(msgspec.Struct, frozen=True):
    """A size, None to leave it, and what is to be remembered."""

    nodes: int | None
    why: str
    memory: dict[str, Any]


def decide_size(
    view: MemberView, memory: Memory, now: float, options: ScaleOptions
) -> Sized:
    """Return how large the member is to be by its queue."""
    grown = _grow(view, memory, now, options)
    if waits_for_nodes(view):
        return grown
    shrunk = shrink(view, memory, now, options)
    return Sized(shrunk.nodes, shrunk.why, {**grown.memory, **shrunk.memory})


def waits_for_nodes(view: MemberView) -> bool:
    """Whether a job waits that the member may ever have the nodes for."""
    return any(size <= view.most for size in view.waiting)


def shrink(
    view: MemberView, memory: Memory, now: float, options: ScaleOptions
) -> Sized:
    """Return the size without the nodes that were free for the whole window."""
    free = view.nodes_free
    if not free or view.nodes <= view.least:
        return Sized(None, "", {})
    spare = min(free, int(memory.get("free", free)))
    begun = since(memory, "free_since", now)
    if now - begun < options.down_window(view):
        return Sized(None, "", {"free": spare, "free_since": begun})
    nodes = max(view.least, view.nodes - spare)
    return Sized(nodes, f"{spare} nodes were free for {now - begun:.0f} s", {})


def _grow(view: MemberView, memory: Memory, now: float, options: ScaleOptions) -> Sized:
    """Return the size with which the chosen job fits, once jobs waited long enough.

    A job that starts is progress, after which the window begins anew, except with
    `total`, which asks whether all is met.
    """
    waits = sum(view.waiting.values())
    begun = since(memory, "waiting_since", now)
    total = options.scale_up_strategy == "total"
    progress = not total and waits < int(memory.get("waiting", waits))
    needed = _needed(view, now, options)
    if not needed or view.nodes >= view.most:
        return Sized(None, "", {})
    if progress:
        begun = now
    if now - begun < options.up_window(view):
        return Sized(None, "", {"waiting": waits, "waiting_since": begun})
    nodes = min(view.most, view.nodes + needed)
    why = f"{waits} jobs have waited for {now - begun:.0f} s"
    return Sized(nodes, why, {"waiting": waits, "waiting_since": now})


def _needed(view: MemberView, now: float, options: ScaleOptions) -> int:
    """Return how many nodes are missing for the job that the strategy chooses.

    Jobs that need more than the member may ever have are left out.
    """
    sizes = sorted(size for size in view.waiting if size <= view.most)
    if not sizes:
        return 0
    strategy = options.scale_up_strategy
    if strategy == "total":
        wanted = sum(size * view.waiting[size] for size in sizes)
    elif strategy == "smallestJob":
        wanted = sizes[0]
    elif strategy == "largestJob":
        wanted = sizes[-1]
    elif strategy == "randomJob":
        every = [size for size in sizes for _ in range(view.waiting[size])]
        wanted = every[draw(len(every), options.seed, view.name, now)]
    else:
        wanted = next((size for size in view.next_jobs if size <= view.most), sizes[0])
    return max(0, wanted - view.room)
