# SPDX-License-Identifier: MIT
"""The site's own nodes, and the scheduler that starts jobs on them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from burst.model.scheduler import Order
from burst.replay.trace import TraceJob

BACKFILL_DEPTH = 500
"""So many jobs behind the first are tried for backfill: Slurm's bf_max_job_test."""


class OwnScheduler:
    """Cores, a queue, and what runs. Jobs are places in the sequence of all.

    A job's time limit is all that this scheduler knows of when it ends.
    """

    def __init__(self, jobs: Sequence[TraceJob], cores: int, order: Order) -> None:
        self._cores = [job.cores for job in jobs]
        self._limits = [job.limit for job in jobs]
        self._depth = BACKFILL_DEPTH if order is Order.EASY else 0
        self._ends: list[tuple[float, int]] = []
        self._end_of: dict[int, float] = {}
        # When the first waiting job can start, and how many cores are free then for
        # others; as of when a job last ended.
        self._reservation: tuple[float, int] | None = None
        self.free = cores
        self.total = cores
        self.waiting: list[int] = []

    def submit(self, job: int, now: float) -> bool:
        """Start a job if it may start now, else let it wait; return if it started."""
        if self.waiting:
            self.waiting.append(job)
            if len(self.waiting) > self._depth or not self._passes(job, now):
                return False
            self.waiting.pop()
        elif self._cores[job] > self.free:
            self.waiting.append(job)
            return False
        self._start(job, now)
        return True

    def end(self, job: int) -> None:
        """Note that a job has ended; `schedule` starts others."""
        end = self._end_of.pop(job)
        del self._ends[bisect_left(self._ends, (end, job))]
        self.free += self._cores[job]
        self._reservation = None

    def withdraw(self, job: int) -> None:
        """Take a job out of the queue; `schedule` starts others."""
        if self.waiting[0] == job:
            self._reservation = None
        self.waiting.remove(job)

    def schedule(self, now: float) -> list[int]:
        """Start what may start; return which."""
        started = []
        for job in self.waiting:
            if self._cores[job] > self.free:
                break
            self._start(job, now)
            started.append(job)
        if started:
            del self.waiting[: len(started)]
            self._reservation = None
        if self.free and len(self.waiting) > 1:
            started += self._backfill(now)
        return started

    def _backfill(self, now: float) -> list[int]:
        window = self.waiting[1 : 1 + self._depth]
        passed = []
        for job in window:
            if self._passes(job, now):
                self._start(job, now)
                passed.append(job)
                if not self.free:
                    break
        if passed:
            gone = set(passed)
            window = [job for job in window if job not in gone]
            self.waiting[1 : 1 + self._depth] = window
        return passed

    def _passes(self, job: int, now: float) -> bool:
        """Tell whether a job may start before the first one that waits."""
        cores = self._cores[job]
        if cores > self.free:
            return False
        shadow, extra = self._reservation or self._reserve()
        if now + self._limits[job] <= shadow:
            return True
        if cores > extra:
            return False
        self._reservation = (shadow, extra - cores)
        return True

    def _reserve(self) -> tuple[float, int]:
        needed = self._cores[self.waiting[0]]
        free = self.free
        place = -1
        while free < needed:
            place += 1
            free += self._cores[self._ends[place][1]]
        shadow = self._ends[place][0]
        self._reservation = (shadow, free - needed)
        return self._reservation

    def _start(self, job: int, now: float) -> None:
        end = now + self._limits[job]
        self.free -= self._cores[job]
        self._end_of[job] = end
        insort(self._ends, (end, job))
