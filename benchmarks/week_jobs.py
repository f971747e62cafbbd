# SPDX-License-Identifier: MIT
"""The jobs of `week`, and their result on nodes that are always there."""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

LENT_NODES = 8
"""The number of nodes that can be lent; the lead has one more of its own."""
Order = Literal["first come first served", "first fit"]


class WeekJob(msgspec.Struct, frozen=True):
    """A job of whole nodes. Times are seconds."""

    submitted: float
    """When it is submitted, counted from the start of the run."""
    nodes: int
    duration: float


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. Times are seconds, `paid` and `used` node-seconds."""

    makespan: float
    """From the start of the run to the end of the last job."""
    waits: Mapping[int, Sequence[float]]
    """How long jobs waited until they started, by their number of nodes."""
    used: float
    """The use of lent nodes by jobs, from start to end of each job."""
    paid: float = 0.0
    """What was paid for lent nodes, from `provision` until they are gone."""
    paid_at_end: float = 0.0
    """What was paid until the last job ended, without the idle time of bursts after it.
    """
    bursts: int = 0
    started: int = 0
    """How many jobs started at all."""

    @property
    def mean_wait(self) -> float:
        """The mean wait of all jobs."""
        return statistics.fmean(each for waits in self.waits.values() for each in waits)

    @property
    def mean_waits(self) -> Mapping[int, float]:
        """The mean wait by the number of nodes of jobs."""
        return {n: statistics.fmean(self.waits[n]) for n in sorted(self.waits)}

    @property
    def worst_wait(self) -> float:
        """The largest of `mean_waits`, divided by `mean_wait`."""
        return max(self.mean_waits.values()) / self.mean_wait if self.mean_wait else 0.0


def make_jobs(count: int, seed: int, scale: float = 1.0) -> list[WeekJob]:
    """Return jobs of 1 to 8 nodes and 1 to 8 s, one every 2.2 s on average.

    Sizes and durations are uniform, the times between submissions exponential. `scale`
    multiplies all times.
    """
    draw = random.Random(seed)
    jobs: list[WeekJob] = []
    now = 0.0
    for _ in range(count):
        now += draw.expovariate(1 / 2.2)
        nodes, duration = draw.randint(1, LENT_NODES), draw.uniform(1.0, 8.0)
        jobs.append(WeekJob(now * scale, nodes, duration * scale))
    return jobs


def run_on_nodes(jobs: Sequence[WeekJob], nodes: int, order: Order) -> RunResult:
    """Return the result of the jobs on `nodes` nodes that are always there."""
    free, now = nodes, 0.0
    coming = list(reversed(jobs))
    queue: list[WeekJob] = []
    ends: list[tuple[float, int]] = []
    waits: dict[int, list[float]] = {}
    while coming or queue or ends:
        times = [coming[-1].submitted] if coming else []
        now = min([*times, *(end for end, _ in ends[:1])])
        while ends and ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while coming and coming[-1].submitted <= now:
            queue.append(coming.pop())
        for job in list(queue):
            if job.nodes <= free:
                free -= job.nodes
                heapq.heappush(ends, (now + job.duration, job.nodes))
                waits.setdefault(job.nodes, []).append(now - job.submitted)
                queue.remove(job)
            elif order == "first come first served":
                break
    used = sum(job.nodes * job.duration for job in jobs)
    return RunResult(makespan=now, waits=waits, used=used, started=len(jobs))
