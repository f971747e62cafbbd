# SPDX-License-Identifier: MIT
"""When pending jobs start on own nodes: the scheduler's order, simulated.

If the room is a `NodePool`, it is simulated node by node: cores, GPUs, and the ranks
that a job may have. Jobs that are submitted later are not known; in strict order they
change nothing.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from burst.core.forecast.conservative import (
    NEVER,
    NO_JOB,
    End,
    OwnRoom,
    Profile,
    Start,
    Waiting,
    simulate_conservative,
)
from burst.core.forecast.history import RunTime
from burst.core.plan.estimate import StartEstimate
from burst.model.jobid import JobId
from burst.model.scheduler import Order

BACKFILL_DEPTH = 100
"""How many jobs behind the first waiting one are tried for backfill, as schedulers try
them."""

Leaves = Callable[[int, float], bool]
"""Called once for each waiting job, with its place and the start that was found. Tells
whether the job leaves the queue for a burst; then jobs behind it start without it."""


class Scheduling(msgspec.Struct, frozen=True):
    """How a queue is served: in which order, and which jobs leave it unserved."""

    order: Order
    leaves: Leaves | None = None
    """None if all stay."""
    depth: int = BACKFILL_DEPTH
    """How many jobs behind the first that waits are tried for backfill."""
    until: float = math.inf
    """No time passes beyond this; where the order is conservative, it does."""


class RunningJob(msgspec.Struct, frozen=True, gc=False):
    """A job that runs on own nodes."""

    job: JobId
    share: Any
    run_time: RunTime
    """For how long it will run from now on."""


class PendingJob(msgspec.Struct, frozen=True, gc=False):
    """A job that waits for own nodes, which could hold it if they were idle."""

    job: JobId
    need: tuple[Any, ...]
    """As in `Waiting`."""
    cores: int
    run_time: RunTime
    queue: str = ""


def estimate_starts(
    now: float,
    room: OwnRoom,
    running: Sequence[RunningJob],
    waiting: Sequence[PendingJob],
    scheduling: Scheduling,
) -> dict[JobId, StartEstimate]:
    """Return an estimate of the start of each waiting job.

    `room` is what is free now; `waiting` is in the scheduler's order. The expected
    starts decide which jobs leave the queue.

    There are three simulations: with the expected, the shortest and the longest run
    times. As shorter run times can make a backfilled job start later, the interval
    always includes the expected start.
    """
    gone: set[int] = set()

    def asked(place: int, at: float) -> bool:
        assert scheduling.leaves is not None
        if scheduling.leaves(place, at):
            gone.add(place)
        return place in gone

    def simulated(which: str, leaves: Leaves | None) -> list[Start]:
        pick = operator.attrgetter(which)
        ends = sorted(
            End(now + pick(r.run_time), r.job, r.job, r.share) for r in running
        )
        queue = [Waiting(w.need, w.cores, pick(w.run_time)) for w in waiting]
        as_asked = Scheduling(scheduling.order, leaves, scheduling.depth)
        return simulate_queue(now, room, ends, queue, as_asked)

    asks = None if scheduling.leaves is None else asked
    expected_starts = simulated("expected", asks)
    left = (lambda place, _: place in gone) if gone else None
    bounds = [simulated(which, left) for which in ("shortest", "longest")]
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


def simulate_queue(
    now: float,
    room: OwnRoom,
    ends: Sequence[End],
    queue: Sequence[Waiting],
    scheduling: Scheduling,
) -> list[Start]:
    """Return when each job of a queue starts, in its order, from what is free now.

    `ends` are those of the running jobs, sorted. A start at math.inf means never.

    `scheduling.leaves` is called for a job as soon as its start is found, so that jobs
    behind it are judged by what it leaves to them.
    """
    if scheduling.order is Order.CONSERVATIVE:
        profile = Profile(now, room, ends)
        depth, leaves = scheduling.depth, scheduling.leaves
        return simulate_conservative(profile, queue, depth, leaves)
    simulation = _Simulation(now, room, ends, queue, scheduling)
    simulation.run()
    return simulation.starts


def starts_now(
    now: float,
    room: OwnRoom,
    ends: Sequence[End],
    queue: Sequence[Waiting],
    scheduling: Scheduling,
) -> list[int]:
    """Return the places of the jobs of a queue that the scheduler starts at this time.

    This is the first step of `simulate_queue`. `ends` and run times are those that the
    scheduler knows: time limits. All ends are later than now. No job leaves the queue.
    """
    if len(queue) == 1:
        return [0] if room.fit(*queue[0].need) else []
    at_once = msgspec.structs.replace(scheduling, leaves=None, until=now)
    starts = simulate_queue(now, room, ends, queue, at_once)
    return [place for place, (at, _) in enumerate(starts) if at <= now]


class _Simulation:
    """One run. Run times are exact in it, so the first job's start is known at once."""

    def __init__(
        self,
        now: float,
        room: OwnRoom,
        ends: Sequence[End],
        queue: Sequence[Waiting],
        scheduling: Scheduling,
    ) -> None:
        self._leaves, self._until = scheduling.leaves, scheduling.until
        self._depth = scheduling.depth if scheduling.order is Order.EASY else 0
        self._now = now
        self._room = room.copy()
        # A job that should have ended by now may end at any moment.
        late = bisect_right(ends, (now, math.inf))
        self._ends = [e._replace(at=now) for e in ends[:late]]
        self._ends += ends[late:]
        self._next_end = 0
        self._queue = queue
        self._after = NO_JOB
        self.starts: list[Start] = [NEVER] * len(queue)

    def run(self) -> None:
        """Start all jobs except those that leave."""
        queue, depth = self._queue, self._depth
        started = bytearray(len(queue))
        for first in range(len(queue)):
            if started[first]:
                continue
            share = self._room.fit(*queue[first].need)
            if share:
                if not self._goes(first, (self._now, self._after)):
                    self._start(first, share)
                continue
            start, later = self._look_ahead(queue[first])
            if self._goes(first, start):
                continue
            share = later.fit(*queue[first].need)
            if start != NEVER:
                later.take_shares(share)
            behind = range(first + 1, min(first + 1 + depth, len(queue)))
            window = [index for index in behind if not started[index]]
            for passed in self._backfill(start[0], later, window):
                started[passed] = 1
            if start == NEVER:
                self._never(i for i in range(first + 1, len(queue)) if not started[i])
                return
            if start[0] > self._until:
                return
            # Go on from then, when all that ends until then has ended.
            self._room, (self._now, self._after) = later, start
            self._next_end = self._first_after(self._now)
            self._note_end(first, share)

    def _never(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._goes(index, NEVER)

    def _goes(self, index: int, start: Start) -> bool:
        """Note a job's start, and tell whether it leaves the queue instead."""
        self.starts[index] = start
        return self._leaves is not None and self._leaves(index, start[0])

    def _look_ahead(self, job: Waiting) -> tuple[Start, OwnRoom]:
        """Return when a job that does not fit now will, and what is free then."""
        # If no job can pass it or leave, time goes on to its start in any case.
        in_turn = self._leaves is None and not self._depth
        later = self._room if in_turn else self._room.copy()
        for place in range(self._next_end, len(self._ends)):
            at, _, after, share = self._ends[place]
            if at == math.inf:
                break
            later.give_shares(share)
            if job.cores <= later.cores and later.fit(*job.need):
                for end in self._ends[place + 1 : self._first_after(at)]:
                    later.give_shares(end.share)
                return (at, after), later
        return NEVER, later

    def _backfill(
        self, shadow: float, later: OwnRoom, window: Sequence[int]
    ) -> list[int]:
        """Start jobs that do not delay the first one; return them, and those that left.

        The first one starts at `shadow`, when `later` is free beside it. Time goes on
        to the last end before that.
        """
        queue = self._queue
        passed: list[int] = []
        while window:
            kept: list[int] = []
            refused: set[tuple[bool, int]] = set()
            for index in window:
                need, cores, run_time = queue[index]
                is_short = self._now + run_time <= shadow
                if not is_short and cores > later.cores:
                    continue  # it will never fit: neither becomes more
                kind = is_short, id(need)
                share = None
                if cores <= self._room.cores and kind not in refused:
                    room = self._room if is_short else self._room.within(later)
                    share = room.fit(*need)
                if not share:
                    refused.add(kind)
                    kept.append(index)
                    continue
                passed.append(index)
                if self._goes(index, (self._now, self._after)):
                    continue
                self._start(index, share)
                if not is_short:
                    later.take_shares(share)
            if self._next_end == len(self._ends):
                break
            at = self._ends[self._next_end].at
            if at >= shadow or at > self._until:
                break
            window = kept
            self._end_next()
        return passed

    def _start(self, index: int, share: Any) -> None:
        self._room.take_shares(share)
        self._note_end(index, share)

    def _note_end(self, index: int, share: Any) -> None:
        # Jobs that wait for this one wait for the running job that lets it start.
        at = self._now + self._queue[index].run_time
        insort(self._ends, End(at, -1 - index, self._after, share), lo=self._next_end)

    def _end_next(self) -> None:
        self._now, _, self._after, share = self._ends[self._next_end]
        self._room.give_shares(share)
        self._next_end += 1

    def _first_after(self, at: float) -> int:
        """Return the index of the first end after a time."""
        after: tuple[float, float] = at, math.inf
        return bisect_right(self._ends, after, lo=self._next_end)
