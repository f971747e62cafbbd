# SPDX-License-Identifier: MIT
"""The site's own nodes: the jobs that wait for them, that run there, and when each
starts.

The scheduler is `burst.core.forecast.queue_order`, which also forecasts starts. It uses
time limits; forecasts use expected run times, which come from the jobs that ran before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cache

from burst.core.forecast.conservative import End, Start, Waiting
from burst.core.forecast.history import JobKind, RunHistory
from burst.core.forecast.queue_order import (
    Leaves,
    Scheduling,
    simulate_queue,
    starts_now,
)
from burst.model.jobid import JobId
from burst.model.scheduler import Order
from burst_replay.trace import TraceJob

_DEPTH = 500
"""How many jobs behind the first are tried for backfill: Slurm's bf_max_job_test."""


class Cores:
    """An `OwnRoom`: own nodes as one pool of cores, as traces do not have nodes."""

    def __init__(self, cores: int) -> None:
        self.cores = cores

    def fit(self, cores: int) -> int:
        """Return `cores` if as many are free, else 0."""
        return cores if cores <= self.cores else 0

    def take_shares(self, share: int, /) -> None:
        """See `OwnRoom`."""
        self.cores -= share

    def give_shares(self, share: int, /) -> None:
        """See `OwnRoom`."""
        self.cores += share

    def copy(self) -> Cores:
        """See `OwnRoom`."""
        return Cores(self.cores)

    def within(self, other: Cores, /) -> Cores:
        """See `OwnRoom`."""
        return Cores(min(self.cores, other.cores))


@cache
def _need_of(cores: int) -> tuple[int]:
    """Return `Waiting.need` of a job, one object for equal jobs."""
    return (cores,)


def _waits(cores: int, run_time: float) -> Waiting:
    return Waiting(_need_of(cores), cores, run_time)


def _ends(job: int, at: float, cores: int) -> End:
    """Return the end of a running job; its id is its place in the trace plus one."""
    return End(at, job + 1, JobId(job + 1), cores)


class OwnQueue:
    """The queue, and the running jobs. Jobs are places in the sequence of all jobs.

    Expectations equal those of the daemon, which computes all of them each time. Here
    one is kept until it is over, or a job of the same user has ended.
    """

    def __init__(
        self, jobs: Sequence[TraceJob], cores: int, order: Order, *, forecasts: bool
    ) -> None:
        """`starts` needs `forecasts`, with which a history of run times is kept."""
        self._jobs, self._order = jobs, order
        self._scheduling = Scheduling(order, depth=_DEPTH)
        self._line = [_waits(job.cores, job.limit) for job in jobs]
        # By running job, its start and its end by the time limit; these ends, sorted.
        self._running: dict[int, tuple[float, End]] = {}
        self._ends: list[End] = []
        self.room = Cores(cores)
        self.waiting: list[int] = []
        self._forecasts, self._history = forecasts, RunHistory()
        self._kinds = [JobKind(job.userid, job.name, job.cores) for job in jobs]
        self._expected_ends: dict[int, End] = {}

    def submit(self, job: int, now: float) -> list[int]:
        """Add a job to the queue; return it if it starts now."""
        self.waiting.append(job)
        return self.schedule(now) if self._fits(job) else []

    def end(self, job: int) -> None:
        """Record the end of a job, also of one that ran on bought nodes."""
        _, end = self._running.pop(job, (0.0, None))
        if end is not None:
            del self._ends[bisect_left(self._ends, end)]
            self.room.give_shares(end.share)
        if self._forecasts:
            facts, jobs = self._jobs[job], self._jobs
            self._history.add(self._kinds[job], facts.run_time, facts.limit)
            for other in [
                o for o in self._expected_ends if jobs[o].userid == facts.userid
            ]:
                del self._expected_ends[other]

    def schedule(self, now: float) -> list[int]:
        """Start the jobs that may start, and return them."""
        started: list[int] = []
        while self.waiting and self._fits(self.waiting[0]):
            started.append(self.waiting[0])
            self._start(self.waiting[0], now)
        passing = self._passing(now)
        for job in passing:
            self._start(job, now)
        return started + passing

    def starts(self, now: float, leaves: Leaves) -> list[Start]:
        """Return when each waiting job starts; `leaves` as for `simulate_queue`."""
        ends = sorted(
            self._expected_end(job, began, now)
            for job, (began, _) in self._running.items()
        )
        queue = [
            _waits(self._jobs[job].cores, self._expected(job, 0.0))
            for job in self.waiting
        ]
        scheduling = Scheduling(self._order, leaves)
        return simulate_queue(now, self.room, ends, queue, scheduling)

    def _passing(self, now: float) -> list[int]:
        """Return the jobs that start now though the first waiting one does not fit."""
        window = self.waiting
        if not window or not self.room.cores or self._order is Order.FIFO:
            return []
        if self._order is Order.EASY:
            first, *behind = window[: _DEPTH + 1]
            # Other jobs could not start anyway.
            window = [first, *filter(self._fits, behind)]
        queue = [self._line[job] for job in window]
        places = starts_now(now, self.room, self._ends, queue, self._scheduling)
        return [window[place] for place in places]

    def _start(self, job: int, now: float) -> None:
        self.waiting.remove(job)
        _, cores, run_time = self._line[job]
        self.room.take_shares(cores)
        end = _ends(job, now + run_time, cores)
        self._running[job] = now, end
        insort(self._ends, end)

    def _fits(self, job: int) -> bool:
        return self._line[job].cores <= self.room.cores

    def _expected_end(self, job: int, began: float, now: float) -> End:
        """Return the expected end of a job that runs."""
        known = self._expected_ends.get(job)
        if known is not None and known.at > now:
            return known
        elapsed = now - began
        expected = self._expected(job, elapsed)
        # Later than now, so that it is computed only once at each time.
        at = max(now + expected, math.nextafter(now, math.inf))
        end = _ends(job, at, self._jobs[job].cores)
        # If a job is expected to run as long again, the expectation always grows.
        if not elapsed or not math.isclose(expected, elapsed):
            self._expected_ends[job] = end
        return end

    def _expected(self, job: int, elapsed: float) -> float:
        limit = self._jobs[job].limit
        return self._history.expect(self._kinds[job], limit, elapsed).expected
