# SPDX-License-Identifier: MIT
"""When pending jobs start on own nodes: the scheduler's order, simulated.

Own nodes are one pool of cores. That is an approximation: how jobs are spread over
nodes, GPUs and constraints are not modelled, so a job may start later than is said.
Jobs that are submitted later are not known; in strict order they change nothing.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence

import msgspec

from burst.core.worth.conservative import Profile, simulate_conservative
from burst.core.worth.estimate import StartEstimate
from burst.core.worth.history import RunTime
from burst.model.jobid import JobId
from burst.model.scheduler import Order

BACKFILL_DEPTH = 100
"""Behind the first waiting job so many are tried for backfill, as schedulers do."""

End = tuple[float, int, JobId]
"""When a running job ends, how many cores that frees, and its id."""
Start = tuple[float, JobId]
"""When a job starts, and the running job whose end lets it start, 0 for none."""

Leaves = Callable[[int, float, JobId], bool]
"""Asked once of each waiting job: of its place, and of the start that was found. Tells
whether it leaves the queue for a burst; then those behind it start without it."""

_NO_JOB = JobId(0)
_NEVER = (math.inf, _NO_JOB)


class Scheduling(msgspec.Struct, frozen=True):
    """How a queue is served: in which order, and which jobs leave it unserved."""

    order: Order
    leaves: Leaves | None = None
    """None: all stay."""


class QueueJob(msgspec.Struct, frozen=True, gc=False):
    """A job that runs or waits, as far as it matters to when others start."""

    job: JobId
    cores: int
    run_time: RunTime
    """For which it will run from now on."""


def estimate_starts(
    now: float,
    free: int,
    running: Iterable[QueueJob],
    waiting: Sequence[QueueJob],
    scheduling: Scheduling,
) -> dict[JobId, StartEstimate]:
    """Return an estimate for each waiting job.

    `free` is the number of cores that are idle; `waiting` is in the scheduler's order.
    A job that needs more cores than there are never starts and blocks nobody. Which
    jobs leave the queue is asked by the expected starts.

    Three simulations: by the expected, the shortest and the longest run times. As
    shorter run times can make a backfilled job start later, the interval always
    includes what is expected.
    """
    jobs = list(running)
    gone: set[int] = set()

    def asked(place: int, at: float, after: JobId) -> bool:
        left = scheduling.leaves is not None and scheduling.leaves(place, at, after)
        if left:
            gone.add(place)
        return left

    def simulated(pick: Callable[[RunTime], float], leaves: Leaves) -> list[Start]:
        ends = sorted((now + pick(r.run_time), r.cores, r.job) for r in jobs)
        queue = [(w.cores, pick(w.run_time)) for w in waiting]
        as_asked = Scheduling(scheduling.order, leaves)
        return simulate_queue(now, free, ends, queue, as_asked)

    expected_starts = simulated(lambda run_time: run_time.expected, asked)
    bounds = [
        simulated(pick, lambda place, _, __: place in gone)
        for pick in (_shortest, _longest)
    ]
    return {
        job.job: StartEstimate(
            expected=expected,
            latest=max(latest, expected),
            earliest=min(earliest, expected),
            after=after or None,
        )
        for job, (expected, after), (earliest, _), (latest, _) in zip(
            waiting, expected_starts, *bounds, strict=True
        )
    }


def _shortest(run_time: RunTime) -> float:
    return run_time.shortest


def _longest(run_time: RunTime) -> float:
    return run_time.longest


def simulate_queue(
    now: float,
    free: int,
    ends: Sequence[End],
    queue: Sequence[tuple[int, float]],
    scheduling: Scheduling,
) -> list[Start]:
    """Return when each job of a queue starts, in its order.

    `ends`: of the running jobs, sorted. `queue`: the cores and run time of each waiting
    job. A start at math.inf means never.

    `scheduling.leaves` is asked of a job as soon as its start is found, so that those
    behind it are asked by what it leaves to them; not of jobs that need more cores than
    there are.
    """
    if scheduling.order is Order.CONSERVATIVE:
        return _in_profile(Profile(now, free, ends), queue, scheduling.leaves)
    simulation = _Simulation(now, free, ends, queue, scheduling.leaves)
    simulation.run(BACKFILL_DEPTH if scheduling.order is Order.EASY else 0)
    return simulation.starts


def _in_profile(
    profile: Profile, queue: Sequence[tuple[int, float]], leaves: Leaves | None
) -> list[Start]:
    starts: list[Start] = [_NEVER] * len(queue)
    able = [i for i, (cores, _) in enumerate(queue) if cores <= profile.total]

    def goes(place: int, start: Start) -> bool:
        starts[able[place]] = start
        return leaves is not None and leaves(able[place], *start)

    jobs = [queue[i] for i in able]
    simulate_conservative(profile, jobs, BACKFILL_DEPTH, goes)
    return starts


class _Simulation:
    """One run. Run times are exact in it, so the first job's start is known at once."""

    def __init__(
        self,
        now: float,
        free: int,
        ends: Sequence[End],
        queue: Sequence[tuple[int, float]],
        leaves: Leaves | None,
    ) -> None:
        self._leaves = leaves
        self._now = now
        self._free = free
        # A job that should have ended by now may end at any moment.
        self._ends = [e if e[0] > now else (now, e[1], e[2]) for e in ends]
        self._next_end = 0
        self._queue = queue
        self._after = _NO_JOB
        self.starts: list[Start] = [_NEVER] * len(queue)

    def run(self, depth: int) -> None:
        """Start all jobs; so many of those behind the first may start before it."""
        queue = self._queue
        total = self._free + sum(cores for _, cores, _ in self._ends)
        able = [i for i in range(len(queue)) if queue[i][0] <= total]
        started = bytearray(len(queue))
        for place, first in enumerate(able):
            if started[first]:
                continue
            cores = queue[first][0]
            if cores <= self._free:
                if not self._goes(first, (self._now, self._after)):
                    self._start(first)
                continue
            at, after, extra = self._reservation(cores)
            if self._goes(first, (at, after)):
                continue
            window = [i for i in able[place + 1 : place + 1 + depth] if not started[i]]
            for passed in self._backfill(at, extra, window):
                started[passed] = 1
            if at == math.inf:
                self._never([i for i in able[place + 1 :] if not started[i]])
                return
            while cores > self._free:
                self._end_next()
            self._start(first)

    def _never(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._goes(index, _NEVER)

    def _goes(self, index: int, start: Start) -> bool:
        """Note a job's start, and tell whether it leaves the queue instead."""
        self.starts[index] = start
        return self._leaves is not None and self._leaves(index, *start)

    def _backfill(self, shadow: float, extra: int, window: Sequence[int]) -> list[int]:
        """Start jobs that do not delay the first one; return which, and which left.

        That one starts at `shadow`, and then so many `extra` cores are free. Time goes
        on to the last end before that.
        """
        queue = self._queue
        passed: list[int] = []
        while True:
            kept = []
            for index in window:
                needs, run_time = queue[index]
                is_short = self._now + run_time <= shadow
                if not is_short and needs > extra:
                    continue  # it never will: neither becomes more
                if needs > self._free:
                    kept.append(index)
                    continue
                passed.append(index)
                if self._goes(index, (self._now, self._after)):
                    continue
                self._start(index)
                if not is_short:
                    extra -= needs
            if not kept or self._ends[self._next_end][0] >= shadow:
                return passed
            window = kept
            self._end_next()

    def _reservation(self, cores: int) -> tuple[float, JobId, int]:
        """Return when so many cores are free, by whose end, and how many more are."""
        free = self._free
        place = self._next_end
        while free < cores:
            free += self._ends[place][1]
            place += 1
        at, _, after = self._ends[place - 1]
        return at, after if at < math.inf else _NO_JOB, free - cores

    def _start(self, index: int) -> None:
        cores, run_time = self._queue[index]
        self._free -= cores
        # What waits for it waits for the running job that lets it start.
        end = (self._now + run_time, cores, self._after)
        insort(self._ends, end, lo=self._next_end)

    def _end_next(self) -> None:
        self._now, cores, self._after = self._ends[self._next_end]
        self._free += cores
        self._next_end += 1
