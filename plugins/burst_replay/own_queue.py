# SPDX-License-Identifier: MIT
"""The site's own nodes: who waits for them, who runs there, and who starts now.

The order is the one by which starts are forecast (`burst.core.worth.queue_order`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cache

from burst.core.worth.own_room import End, Waiting
from burst.core.worth.queue_order import Scheduling, starts_now
from burst.model.jobid import JobId
from burst.model.scheduler import Order
from burst_replay.trace import TraceJob

_DEPTH = 500
"""So many jobs behind the first are tried for backfill: Slurm's bf_max_job_test."""


class Cores:
    """Own nodes as one pool of cores, as traces do not tell of nodes: a `OwnRoom`."""

    def __init__(self, cores: int) -> None:
        self.cores = cores

    def fit(self, cores: int) -> int:
        """Return so many cores, 0 where they are not free."""
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


class JobEnds:
    """The jobs that run on own nodes, by when they end: by their limits, or else.

    The id of a job is its place in the trace and one.
    """

    def __init__(self, jobs: Sequence[TraceJob]) -> None:
        self.sorted: list[End] = []
        self._jobs = jobs
        self._of: dict[int, End] = {}

    def set(self, job: int, at: float) -> None:
        """Have a job end then."""
        if job in self._of:
            self.remove(job)
        end = End(at, job + 1, JobId(job + 1), self._jobs[job].cores)
        self._of[job] = end
        insort(self.sorted, end)

    def remove(self, job: int) -> None:
        """Forget a job, if it is known."""
        end = self._of.pop(job, None)
        if end is not None:
            del self.sorted[bisect_left(self.sorted, end)]


@cache
def need_of(cores: int) -> tuple[int]:
    """Return `Waiting.need` of a job."""
    return (cores,)


class OwnQueue:
    """The queue, and what runs. Jobs are places in the sequence of all.

    A job's time limit is all that the scheduler knows of when it ends.
    """

    def __init__(self, jobs: Sequence[TraceJob], cores: int, order: Order) -> None:
        self._line = [Waiting(need_of(j.cores), j.cores, j.limit) for j in jobs]
        self._ends = JobEnds(jobs)
        self._scheduling = Scheduling(order, depth=_DEPTH)
        # How many of those that wait may start before one of them has.
        self._reach = None if order is Order.CONSERVATIVE else _DEPTH + 1
        self.room = Cores(cores)
        self.total = cores
        self.waiting: list[int] = []

    def submit(self, job: int, now: float) -> bool:
        """Start a job if it may start now, else let it wait; return if it started."""
        waiting, order = self.waiting, self._scheduling.order
        fits = self._line[job].cores <= self.room.cores
        if fits and not waiting:
            self._start(job, now)
            return True
        waiting.append(job)
        if not fits:
            return False
        if order is Order.CONSERVATIVE:
            window = waiting
        elif order is Order.FIFO or len(waiting) > _DEPTH + 1:
            return False
        else:
            # Those between have been tried: nothing has come free for them since.
            window = [waiting[0], job]
        if not self._step(window, now):
            return False
        waiting.pop()
        return True

    def end(self, job: int) -> None:
        """Note that a job has ended; `schedule` starts others."""
        self._ends.remove(job)
        self.room.give_shares(self._line[job].cores)

    def withdraw(self, job: int) -> None:
        """Take a job out of the queue; `schedule` starts others."""
        self.waiting.remove(job)

    def schedule(self, now: float) -> list[int]:
        """Start what may start; return which."""
        found: list[int] = []
        while self.waiting and self.room.cores:
            first = self.waiting[0]
            started = self._step(self._window(first), now)
            found += started
            gone = set(started)
            if gone:
                front = self.waiting[: self._reach]
                self.waiting[: self._reach] = [job for job in front if job not in gone]
            # Then some behind those that were looked at may start as well.
            if first not in gone:
                break
        return found

    def _window(self, first: int) -> Sequence[int]:
        """Return the jobs that may start now; behind a first that may not, few do."""
        front, line, free = self.waiting[: self._reach], self._line, self.room.cores
        if line[first].cores <= free or self._reach is None:
            return front
        if self._scheduling.order is Order.FIFO:
            return [first]
        return [first, *(job for job in front[1:] if line[job].cores <= free)]

    def _step(self, window: Sequence[int], now: float) -> list[int]:
        """Start those of some jobs that may start now; return which."""
        queue = [self._line[job] for job in window]
        ends = self._ends.sorted
        places = starts_now(now, self.room, ends, queue, self._scheduling)
        started = [window[place] for place in places]
        for job in started:
            self._start(job, now)
        return started

    def _start(self, job: int, now: float) -> None:
        _, cores, limit = self._line[job]
        self.room.take_shares(cores)
        self._ends.set(job, now + limit)
