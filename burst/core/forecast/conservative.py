# SPDX-License-Identifier: MIT
"""When jobs start under conservative backfill: no job delays one before it.

The scheduler keeps a profile of what is free over time. Each waiting job, in order,
gets the first time from which it fits for as long as it runs. Fluxion's policies
`conservative` and `hybrid` do so. `hybrid` does it for the first 64 jobs only, which
counts as the same here.

The types of a simulated queue are here, too; `queue_order` simulates the other orders.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

from burst.model.jobid import JobId

NO_JOB = JobId(0)

Start = tuple[float, JobId]
"""When a job starts, and the running job whose end lets it start, 0 for none."""
NEVER: Start = (float("inf"), NO_JOB)


class OwnRoom(Protocol):
    """What is free at one time. `NodePool` is such a room, node by node.

    Each kind of room has its own types for what a job needs and for the share that it
    gets: in `NodePool` a request with the ranks that it may have, and a shape by rank.
    """

    cores: int
    """How many cores are free, all together."""

    def fit(self, *need: Any, **_: Any) -> Any:
        """Return the share that a job would get, which is false if it does not fit."""

    def take_shares(self, share: Any, /) -> None:
        """Take a share."""

    def give_shares(self, share: Any, /) -> None:
        """Give back what was taken."""

    def copy(self) -> Self:
        """Return a copy, which can be changed without changing this room."""

    def within(self, other: Any, /) -> Self:
        """Return the room for what has to fit into both."""


class End(NamedTuple):
    """The end of a running job."""

    at: float
    number: int
    """Tells ends at the same time apart."""
    job: JobId
    """The running job that is waited for: this one, or the one that it waited for."""
    share: Any


class Waiting(NamedTuple):
    """A job that waits, with the facts that matter to when jobs start."""

    need: tuple[Any, ...]
    """The same object for jobs that need the same, so that these are tried once."""
    cores: int
    """The least number of cores that it takes."""
    run_time: float


class Profile:
    """What is free over time; run times are exact in it."""

    def __init__(self, now: float, room: OwnRoom, ends: Sequence[End]) -> None:
        """Begin with what running jobs leave. `ends` are sorted."""
        self._times = [now]
        self._rooms = [room.copy()]
        self._after = [NO_JOB]
        """By span: the job by whose end it begins."""
        self._shrinks = [False]
        """By span: whether some job starts when it begins. If not, all is free in it
        that is free in the span before."""
        self._found: dict[tuple[int, float], float] = {}
        """By need and run time: when the last such job started. The next one starts no
        earlier."""
        for at, _, job, share in ends:
            if at == math.inf:
                break
            # A job that should have ended by now may end at any moment.
            span = self._split(max(at, now), job)
            self._rooms[span].give_shares(share)
            self._after[span] = job

    def find(self, job: Waiting) -> tuple[Start, Any]:
        """Return the first start of a job, and its share; math.inf if never."""
        kind = id(job.need), job.run_time
        start = bisect_left(self._times, self._found.get(kind, -math.inf))
        last = len(self._times) - 1
        for span in range(start, len(self._times)):
            if self._rooms[span].cores < job.cores:
                start = span + 1
            while start <= span and (
                span == last
                or self._times[span + 1] - self._times[start] >= job.run_time
            ):
                share = self._fit(job, start, span)
                if share:
                    at = self._found[kind] = self._times[start]
                    return (at, self._after[start]), share
                start += 1
        return NEVER, None

    def _fit(self, job: Waiting, start: int, last: int) -> Any:
        """Return the share that a job would have from one span to another."""
        room = self._rooms[start]
        share = room.fit(*job.need)
        for span in range(start + 1, last + 1):
            if share and self._shrinks[span]:
                room = room.within(self._rooms[span])
                share = room.fit(*job.need)
        return share

    def take(self, start: Start, share: Any, run_time: float) -> None:
        """Give a job its share from a start that was found."""
        at, after = start
        first = bisect_left(self._times, at)
        last = len(self._times)
        if run_time < math.inf:
            # Jobs that wait for this one wait for the running job that lets it start.
            last = self._split(at + run_time, after)
        for room in self._rooms[first:last]:
            room.take_shares(share)
        self._shrinks[first] = True

    def _split(self, at: float, after: JobId) -> int:
        """Make a span begin at a time; return its index."""
        place = bisect_left(self._times, at)
        if place == len(self._times) or self._times[place] > at:
            self._times.insert(place, at)
            self._rooms.insert(place, self._rooms[place - 1].copy())
            self._after.insert(place, after)
            self._shrinks.insert(place, False)
        return place

    def forget(self, before: float) -> None:
        """Let no further job start before a time, at which some job starts."""
        place = bisect_left(self._times, before)
        for each in (self._times, self._rooms, self._after, self._shrinks):
            del each[:place]


def simulate_conservative(
    profile: Profile,
    queue: Sequence[Waiting],
    depth: int,
    leaves: Callable[[int, float], bool] | None = None,
) -> list[Start]:
    """Return when each job of a queue starts, in its order.

    `leaves` gets each start, and tells whether the job leaves the queue instead.
    `depth` jobs behind one that has not started may start before it.
    """
    starts: list[Start] = []
    ahead: deque[float] = deque()
    for index, job in enumerate(queue):
        if len(ahead) > depth:
            profile.forget(ahead.popleft())
        start, share = profile.find(job)
        starts.append(start)
        if leaves is not None and leaves(index, start[0]):
            continue
        if share:
            profile.take(start, share, job.run_time)
            ahead.append(start[0])
    return starts
