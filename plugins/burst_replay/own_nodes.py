# SPDX-License-Identifier: MIT
"""The site's own nodes: the jobs that wait for them, that run there, and when each
starts.

The scheduler is `burst.core.worth.queue_order`, which also forecasts starts. It uses
time limits; forecasts use expected run times, which come from the jobs that ran before.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from burst.core.worth.history import JobKind, RunHistory
from burst.core.worth.own_room import End, Start, Waiting
from burst.core.worth.queue_order import (
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


class _JobEnds:
    """The jobs that run on own nodes, sorted by their end: by time limit or expected.

    The id of a job is its place in the trace plus one.
    """

    def __init__(self, jobs: Sequence[TraceJob]) -> None:
        self.sorted: list[End] = []
        self._jobs = jobs
        self._of: dict[int, End] = {}

    def set(self, job: int, at: float) -> None:
        if job in self._of:
            self.remove(job)
        end = End(at, job + 1, JobId(job + 1), self._jobs[job].cores)
        self._of[job] = end
        insort(self.sorted, end)

    def remove(self, job: int) -> None:
        # A forecast may not have been made since the job started.
        end = self._of.pop(job, None)
        if end is not None:
            del self.sorted[bisect_left(self.sorted, end)]


@cache
def _need_of(cores: int) -> tuple[int]:
    """Return `Waiting.need` of a job, one object for equal jobs."""
    return (cores,)


class OwnQueue:
    """The queue, and the running jobs. Jobs are places in the sequence of all jobs."""

    def __init__(self, jobs: Sequence[TraceJob], cores: int, order: Order) -> None:
        self._line = [Waiting(_need_of(j.cores), j.cores, j.limit) for j in jobs]
        self._ends = _JobEnds(jobs)
        self._scheduling = Scheduling(order, depth=_DEPTH)
        self.room = Cores(cores)
        self.waiting: list[int] = []

    def submit(self, job: int, now: float) -> list[int]:
        """Add a job to the queue; return it if it starts now."""
        self.waiting.append(job)
        return self.schedule(now) if self._fits(job) else []

    def end(self, job: int) -> None:
        """Record the end of a job; `schedule` then starts others."""
        self._ends.remove(job)
        self.room.give_shares(self._line[job].cores)

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

    def _passing(self, now: float) -> list[int]:
        """Return the jobs that start now though the first waiting one does not fit."""
        order, window = self._scheduling.order, self.waiting
        if not window or not self.room.cores or order is Order.FIFO:
            return []
        if order is Order.EASY:
            first, *behind = window[: _DEPTH + 1]
            # Other jobs could not start anyway.
            window = [first, *filter(self._fits, behind)]
        queue = [self._line[job] for job in window]
        ends = self._ends.sorted
        places = starts_now(now, self.room, ends, queue, self._scheduling)
        return [window[place] for place in places]

    def _start(self, job: int, now: float) -> None:
        self.waiting.remove(job)
        self.room.take_shares(self._line[job].cores)
        self._ends.set(job, now + self._line[job].run_time)

    def _fits(self, job: int) -> bool:
        return self._line[job].cores <= self.room.cores


class TraceForecasts:
    """The history of run times, and the expected end of each job on own nodes.

    The expectations equal those of the daemon, which computes all of them each time.
    Here only those are computed anew that may have changed: of users one of whose jobs
    has ended, and of jobs that run longer than expected, or longer than any job like
    them.
    """

    def __init__(self, jobs: Sequence[TraceJob], order: Order) -> None:
        self._jobs = jobs
        self._order = order
        self._kinds = [JobKind(job.userid, job.name, job.cores) for job in jobs]
        self._history = RunHistory()
        self._started: dict[int, float] = {}
        self._ends = _JobEnds(jobs)
        self._running_of: defaultdict[int, set[int]] = defaultdict(set)
        self._waiting_of: defaultdict[int, dict[int, Waiting]] = defaultdict(dict)
        self._stale: set[int] = set()
        # Jobs that are expected to run as long again: the expectation always grows.
        self._longest: set[int] = set()

    def start(self, job: int, now: float) -> None:
        """Record that a job runs on own nodes from now on."""
        self._started[job] = now
        self._running_of[self._jobs[job].userid].add(job)
        self._stale.add(job)

    def end(self, job: int) -> None:
        """Record the end of a job, on own or on bought nodes."""
        facts = self._jobs[job]
        self._history.add(self._kinds[job], facts.run_time, facts.limit)
        running = self._running_of[facts.userid]
        self._waiting_of.pop(facts.userid, None)
        if self._started.pop(job, None) is not None:
            running.remove(job)
            self._ends.remove(job)
        # The expectation for a job depends only on jobs of the same user.
        self._stale |= running
        self._stale.discard(job)
        self._longest.discard(job)

    def starts(
        self, waiting: Sequence[int], room: Cores, now: float, leaves: Leaves
    ) -> list[Start]:
        """Return when each waiting job starts; `leaves` as for `simulate_queue`."""
        for end in self._ends.sorted:
            if end.at > now:
                break
            self._stale.add(end.number - 1)  # it runs longer than expected
        for job in self._stale | self._longest:
            self._expect(job, now)
        self._stale.clear()
        queue = [self._waits(job) for job in waiting]
        scheduling = Scheduling(self._order, leaves)
        return simulate_queue(now, room, self._ends.sorted, queue, scheduling)

    def _waits(self, job: int) -> Waiting:
        facts = self._jobs[job]
        known = self._waiting_of[facts.userid]
        if job not in known:
            expected = self._history.expect(self._kinds[job], facts.limit).expected
            known[job] = Waiting(_need_of(facts.cores), facts.cores, expected)
        return known[job]

    def _expect(self, job: int, now: float) -> None:
        elapsed, limit = now - self._started[job], self._jobs[job].limit
        expected = self._history.expect(self._kinds[job], limit, elapsed).expected
        as_long = bool(elapsed) and math.isclose(expected, elapsed)
        (self._longest.add if as_long else self._longest.discard)(job)
        # Later than now, so that it is computed only once at each time.
        self._ends.set(job, max(now + expected, math.nextafter(now, math.inf)))
