# SPDX-License-Identifier: MIT
"""`workload-demand`: nodes follow the queue.

All jobs of the file are submitted when the member is made. The member grows while jobs
wait, shrinks when nodes are free for a while, and ends when all is done. The memory has
since when jobs wait, how many nodes are free, and since when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from burst_ensemble.algorithm import (
    SUBMIT_MOST,
    JobGroup,
    MemberDecision,
    MemberView,
    Memory,
    OptionProblem,
    draw,
)
from burst_ensemble.core.algorithms.common import (
    Checks,
    IdleOptions,
    JobOrder,
    YesNo,
    decide_end,
    have,
    in_order,
    is_yes,
    since,
    submitted,
    usable,
)


class DemandOptions(IdleOptions, frozen=True, rename="camel"):
    """The options of `workload-demand`: those of idling, and these."""

    scale_checks: Checks = 5
    """How many checks jobs must wait before the member grows."""
    scale_up_checks: Checks | None = None
    """As `scaleChecks`, but only for growing; default: `scaleChecks`."""
    scale_down_checks: Checks | None = None
    """How many checks nodes must be free before they are given back; default: two more
    than `scaleChecks`."""
    scale_up_strategy: Literal[
        "nextJob", "smallestJob", "largestJob", "randomJob", "total"
    ] = "nextJob"
    """Which waiting job the member grows for; with `total` it grows until all jobs fit
    at once."""
    scale_down_strategy: Literal["excess", "excessNodes"] = "excess"
    """The member shrinks by the nodes that were free all the time. Both words mean the
    same."""
    order: JobOrder = "random"
    """The order in which jobs are submitted: "random", "ascending" or "descending" by
    their nodes, "" for that of the file."""
    submit: YesNo = "yes"
    """Whether it submits jobs. Set "no" if another algorithm of the member does."""
    seed: int = 0
    """Seed of the random numbers."""

    def up_window(self, view: MemberView) -> float:
        """Return for how many seconds jobs must wait."""
        return (self.scale_up_checks or self.scale_checks) * view.check

    def down_window(self, view: MemberView) -> float:
        """Return for how many seconds nodes must be free."""
        return (self.scale_down_checks or self.scale_checks + 2) * view.check


class WorkloadDemand:
    """See the module's docstring."""

    Options = DemandOptions

    def __init__(self, options: DemandOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the decision (`burst_ensemble.algorithm.Algorithm`)."""
        size = _decide_size(view, memory, now, self._options)
        idle = decide_end(view, memory, now, self._options)
        return MemberDecision(
            nodes=size.nodes,
            submit=tuple(self._jobs(view)),
            end=idle.end,
            memory={**size.memory, **idle.memory},
            why=idle.why or size.why,
        )

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return the jobs that it would never submit."""
        if not is_yes(self._options.submit):
            return []
        return _never_submitted(view)

    def _jobs(self, view: MemberView) -> list[str]:
        """Return the member's own jobs; if none is left, the shared jobs that fit."""
        if not is_yes(self._options.submit) or view.unconfirmed:
            return []
        seed = (self._options.seed, view.name, submitted(view))
        jobs = in_order(_all_left(usable(view)), self._options.order, *seed)
        own = [job.name for job in jobs if not job.shared]
        shared = (job for job in jobs if job.shared)
        taken = _fitting(shared, 0 if own else _room_for_jobs(view))
        return [*own, *taken][:SUBMIT_MOST]


def _room_for_jobs(view: MemberView) -> int:
    """Return how many more nodes the member could give to jobs if it grew to `max`."""
    return max(0, view.most - view.nodes_busy - view.nodes_waited_for)


def _all_left(groups: Iterable[JobGroup]) -> list[JobGroup]:
    """Return a group once for each of its jobs that is not submitted yet."""
    return [group for group in groups for _ in range(group.left or 0)]


def _fitting(jobs: Iterable[JobGroup], nodes: int) -> list[str]:
    """Return the names of the jobs, in their order, that fit on `nodes` together."""
    found: list[str] = []
    for job in jobs:
        if job.nodes <= nodes:
            nodes -= job.nodes
            found.append(job.name)
    return found


def _never_submitted(view: MemberView) -> list[OptionProblem]:
    """Return a problem for each entry of `jobs` whose `count` is 0."""
    return [
        OptionProblem(
            "",
            f"jobs {group.name} have count 0, and workload-demand submits no such jobs",
            "give them a count, or use more-jobs or triggers",
        )
        for group in view.jobs
        if group.left is None
    ]


def _decide_size(
    view: MemberView, memory: Memory, now: float, options: DemandOptions
) -> MemberDecision:
    """Return the size of the member that its queue calls for."""
    grown = _grow(view, memory, now, options)
    if _waits_for_nodes(view):
        return grown
    shrunk = _shrink(view, memory, now, options)
    return msgspec.structs.replace(shrunk, memory={**grown.memory, **shrunk.memory})


def _waits_for_nodes(view: MemberView) -> bool:
    """Tell whether a job waits that fits the member at its `max`."""
    return any(size <= view.most for size in view.waiting)


def _shrink(
    view: MemberView, memory: Memory, now: float, options: DemandOptions
) -> MemberDecision:
    """Return the size less the nodes that were free for the whole window."""
    free = view.nodes_free
    if not free or view.nodes <= view.least:
        return MemberDecision()
    spare = min(free, int(memory.get("free", free)))
    begun = since(memory, "free_since", now)
    if now - begun < options.down_window(view):
        return MemberDecision(memory={"free": spare, "free_since": begun})
    nodes = max(view.least, view.nodes - spare)
    return MemberDecision(
        nodes=nodes, why=f"{have(spare, 'node')} been free for {now - begun:.0f} s"
    )


def _grow(
    view: MemberView, memory: Memory, now: float, options: DemandOptions
) -> MemberDecision:
    """Return the size with which the chosen job fits, once jobs waited long enough.

    A job that starts is progress: the window begins anew, except with `total`, which
    wants nodes for all jobs.
    """
    waits = sum(view.waiting.values())
    begun = since(memory, "waiting_since", now)
    total = options.scale_up_strategy == "total"
    progress = not total and waits < int(memory.get("waiting", waits))
    needed = _needed(view, now, options)
    if not needed or view.nodes >= view.most:
        return MemberDecision()
    if progress:
        begun = now
    if now - begun < options.up_window(view):
        return MemberDecision(memory={"waiting": waits, "waiting_since": begun})
    nodes = min(view.most, view.nodes + needed)
    why = f"{have(waits, 'job')} waited for {now - begun:.0f} s"
    return MemberDecision(
        nodes=nodes, why=why, memory={"waiting": waits, "waiting_since": now}
    )


def _needed(view: MemberView, now: float, options: DemandOptions) -> int:
    """Return how many nodes are missing for the job that the strategy chooses.

    Jobs that need more nodes than the member's `max` are left out.
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
