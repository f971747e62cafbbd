# SPDX-License-Identifier: MIT
"""When waiting jobs of a replay are expected to start, by what ran before."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from burst.core.worth.history import JobKind, RunHistory
from burst.core.worth.own_room import Start, Waiting
from burst.core.worth.queue_order import Leaves, Scheduling, simulate_queue
from burst.model.scheduler import Order
from burst_replay.own_queue import Cores, JobEnds, need_of
from burst_replay.trace import TraceJob


class TraceForecasts:
    """The history of run times, and the expected end of each job on own nodes.

    Expectations are the same as if all were worked out anew each time, as the daemon
    does, but only those are that may have changed: of users of whom a job has ended,
    and of jobs that run longer than was expected, or than any other like them.
    """

    def __init__(self, jobs: Sequence[TraceJob], order: Order) -> None:
        self._jobs = jobs
        self._order = order
        self._kinds = [JobKind(job.userid, job.name, job.cores) for job in jobs]
        self._history = RunHistory()
        self._started: dict[int, float] = {}
        self._ends = JobEnds(jobs)
        self._running_of: defaultdict[int, set[int]] = defaultdict(set)
        self._waiting_of: defaultdict[int, dict[int, Waiting]] = defaultdict(dict)
        self._stale: set[int] = set()
        # Expected to run as long again, which is longer each time.
        self._longest: set[int] = set()

    def start(self, job: int, now: float) -> None:
        """Note that a job runs on own nodes from now on."""
        self._started[job] = now
        self._running_of[self._jobs[job].userid].add(job)
        self._stale.add(job)

    def end(self, job: int) -> None:
        """Note that a job has ended, on own or on bought nodes."""
        facts = self._jobs[job]
        self._history.add(self._kinds[job], facts.run_time, facts.limit)
        running = self._running_of[facts.userid]
        self._waiting_of.pop(facts.userid, None)
        if self._started.pop(job, None) is not None:
            running.remove(job)
            self._ends.remove(job)
        # All that is expected of a job rests on those of its user.
        self._stale |= running
        self._stale.discard(job)
        self._longest.discard(job)

    def starts(
        self, waiting: Sequence[int], room: Cores, now: float, leaves: Leaves
    ) -> list[Start]:
        """Return when each waiting job starts; `leaves` as of `simulate_queue`."""
        for end in self._ends.sorted:
            if end.at > now:
                break
            self._stale.add(end.number - 1)  # it runs longer than was expected
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
            known[job] = Waiting(need_of(facts.cores), facts.cores, expected)
        return known[job]

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
        self._ends.set(job, max(now + run_time.expected, math.nextafter(now, math.inf)))
