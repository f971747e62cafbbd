# SPDX-License-Identifier: MIT
"""When waiting jobs of a replay are expected to start, by what ran before."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence

from burst.core.worth.history import JobKind, RunHistory
from burst.core.worth.own_room import End, Start, Waiting
from burst.core.worth.queue_order import Leaves, Scheduling, simulate_queue
from burst.model.jobid import JobId
from burst.model.scheduler import Order
from burst.replay.trace import TraceJob


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


class TraceForecasts:
    """The history of run times, and the expected end of each job on own nodes.

    The id of a job is its place in the trace and one. Expectations are the same as if
    all were worked out anew each time, as the daemon does, but only those are that may
    have changed: of users of whom a job has ended, and of jobs that run longer
    than was expected, or than any other like them.
    """

    def __init__(self, jobs: Sequence[TraceJob], order: Order) -> None:
        self._jobs = jobs
        self._order = order
        self._needs = [(job.cores,) for job in jobs]
        self._kinds = [JobKind(job.userid, job.name, job.cores) for job in jobs]
        self._history = RunHistory()
        self._started: dict[int, float] = {}
        self._end_of: dict[int, End] = {}
        self._ends: list[End] = []
        self._running_of: defaultdict[int, set[int]] = defaultdict(set)
        self._stale: set[int] = set()
        # Expected to run as long again, which is longer each time.
        self._longest: set[int] = set()

    def start(self, job: int, now: float) -> None:
        """Note that a job runs on own nodes from now on."""
        self._started[job] = now
        self._running_of[self._jobs[job].userid].add(job)
        self._expect(job, now)

    def end(self, job: int) -> None:
        """Note that a job has ended, on own or on bought nodes."""
        facts = self._jobs[job]
        self._history.add(self._kinds[job], facts.run_time, facts.limit)
        if self._started.pop(job, None) is not None:
            self._running_of[facts.userid].remove(job)
            self._forget(job)
        # All that is expected of a job rests on those of its user.
        self._stale |= self._running_of[facts.userid]
        self._stale.discard(job)
        self._longest.discard(job)

    def starts(
        self, waiting: Sequence[int], free: int, now: float, leaves: Leaves
    ) -> list[Start]:
        """Return when each waiting job starts; `leaves` as of `simulate_queue`."""
        while self._ends and self._ends[0].at <= now:
            # It runs longer than was expected.
            self._stale.discard(job := self._ends[0].number - 1)
            self._forget(job)
            self._expect(job, now)
        for job in self._stale | self._longest:
            self._forget(job)
            self._expect(job, now)
        self._stale.clear()
        jobs = self._jobs
        queue = [
            Waiting(
                self._needs[job],
                jobs[job].cores,
                self._history.expect(self._kinds[job], jobs[job].limit).expected,
            )
            for job in waiting
        ]
        scheduling = Scheduling(self._order, leaves)
        return simulate_queue(now, Cores(free), self._ends, queue, scheduling)

    def _expect(self, job: int, now: float) -> None:
        elapsed = now - self._started[job]
        run_time = self._history.expect(
            self._kinds[job], self._jobs[job].limit, elapsed
        )
        if elapsed and math.isclose(run_time.expected, elapsed):
            self._longest.add(job)
        else:
            self._longest.discard(job)
        # Later than now, so that it is asked about once at a time.
        at = max(now + run_time.expected, math.nextafter(now, math.inf))
        end = End(at, job + 1, JobId(job + 1), self._jobs[job].cores)
        self._end_of[job] = end
        insort(self._ends, end)

    def _forget(self, job: int) -> None:
        del self._ends[bisect_left(self._ends, self._end_of.pop(job))]
