# SPDX-License-Identifier: MIT
"""When jobs start under conservative backfill: each where it delays none before it.

The scheduler keeps a profile of how many cores are free from when until when. Each
waiting job, in order, is given the first time from which enough are free for as long as
it runs. Fluxion's policies `conservative` and `hybrid` do so; the second for the first
64 jobs alone, which is taken to be the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence

from burst.model.jobid import JobId

_NO_JOB = JobId(0)
_NEVER = (math.inf, _NO_JOB)


class Profile:
    """How many cores are free over time; run times are exact in it."""

    def __init__(
        self, now: float, free: int, ends: Sequence[tuple[float, int, JobId]]
    ) -> None:
        """Begin with what running jobs leave. `ends` as of `queue_model.End`."""
        self.total = free + sum(cores for _, cores, _ in ends)
        self._times = [now]
        self._free = [free]
        self._after = [_NO_JOB]
        """By whose end a span begins."""
        for at, cores, job in sorted(ends):
            if at < math.inf:
                free += cores
                # A job that should have ended by now may end at any moment.
                self._append(max(at, now), free, job)

    def _append(self, at: float, free: int, job: JobId) -> None:
        if at == self._times[-1]:
            self._free[-1], self._after[-1] = free, job
            return
        self._times.append(at)
        self._free.append(free)
        self._after.append(job)

    def find(self, cores: int, run_time: float) -> tuple[float, JobId]:
        """Return the first start of a job, and by whose end; at infinity if never."""
        start = 0
        last = len(self._times) - 1
        for span in range(len(self._times)):
            if self._free[span] < cores:
                start = span + 1
            elif span < last and self._times[span + 1] - self._times[start] >= run_time:
                break
        if start > last:
            return _NEVER
        return self._times[start], self._after[start]

    def take(self, start: tuple[float, JobId], cores: int, run_time: float) -> None:
        """Give a job so many cores from a start that was found."""
        at, after = start
        first = bisect_left(self._times, at)
        last = len(self._times)
        if run_time < math.inf:
            # What waits for it waits for the running job that lets it start.
            last = self._split(at + run_time, after)
        for span in range(first, last):
            self._free[span] -= cores

    def _split(self, at: float, after: JobId) -> int:
        """Have a span begin at a time; return which one."""
        place = bisect_left(self._times, at)
        if place == len(self._times) or self._times[place] > at:
            self._times.insert(place, at)
            self._free.insert(place, self._free[place - 1])
            self._after.insert(place, after)
        return place

    def forget(self, before: float) -> None:
        """Have no job start before a time, which is the start of one."""
        place = bisect_left(self._times, before)
        for each in (self._times, self._free, self._after):
            del each[:place]


def simulate_conservative(
    profile: Profile,
    queue: Sequence[tuple[int, float]],
    depth: int,
    goes: Callable[[int, tuple[float, JobId]], bool],
) -> None:
    """Start the jobs of a queue: the cores and run time of each, in their order.

    `goes` is told of each start; it tells whether the job leaves the queue instead. So
    many jobs behind one that has not started may start before it.
    """
    ahead: deque[float] = deque()
    for index, (cores, run_time) in enumerate(queue):
        if len(ahead) > depth:
            profile.forget(ahead.popleft())
        start = profile.find(cores, run_time)
        if goes(index, start) or start == _NEVER:
            continue
        profile.take(start, cores, run_time)
        ahead.append(start[0])
