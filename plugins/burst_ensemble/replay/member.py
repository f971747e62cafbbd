# SPDX-License-Identifier: MIT
"""A member of an ensemble in simulation: nodes that boot and are drained, and a queue.

Jobs have whole nodes, and start in the order in which they were submitted. Nodes boot
for a while; one that is given back is paid until it is torn down.
Each job of an isolated member boots nodes of its own.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import islice

import msgspec

from burst_ensemble.algorithm import QueueCounts
from burst_ensemble.core.reading import JobEvent, MemberEvent, MemberReading

_NEXT = 11


class SimulatedJob(msgspec.Struct):
    """One job. Times are seconds from the start of the simulation."""

    group: str
    nodes: int
    run_time: float
    succeeds: bool = True
    submit: float = 0.0
    start: float = 0.0


class NodeTimes(msgspec.Struct, frozen=True):
    """How a node's life costs."""

    boot: float = 300.0
    """Seconds from the request to online."""
    teardown: float = 60.0
    """Seconds that a node is paid after it was given back."""
    price: float = 1.0
    """Of a node and hour."""


class SimulatedMember:
    """One member, as far as `burst_ensemble.core` sees it."""

    def __init__(self, times: NodeTimes) -> None:
        self.times = times
        self.size = 0
        """How many nodes it is to have."""
        self.up = 0
        """Nodes that are online, those that are drained, too."""
        self.busy = 0
        self.ended = False
        self.waiting: deque[SimulatedJob] = deque()
        self.started: list[SimulatedJob] = []
        self.paid = 0.0
        """Node-seconds."""
        self.needed = 0.0
        """Node-seconds of jobs."""
        self.resizes: list[tuple[float, int]] = []
        """When its size was changed, and to what."""
        self.finished = 0
        self._now = 0.0
        self._booting: list[float] = []
        self._leaving: list[float] = []
        self._running: list[tuple[float, int, SimulatedJob]] = []
        self._events: list[MemberEvent] = []
        self._told = 0.0

    def next_change(self) -> float | None:
        """Return when something happens next by itself."""
        ends = [self._running[0][0]] if self._running else []
        times = [*self._booting[:1], *self._leaving[:1], *ends]
        return min(times, default=None)

    @property
    def nodes_paid(self) -> int:
        """Nodes that are paid now."""
        return self.up + len(self._booting) + len(self._leaving)

    def advance(self, now: float) -> None:
        """Let everything happen up to a time."""
        while (change := self.next_change()) is not None and change <= now:
            self._pay(change)
            while self._booting and self._booting[0] <= change:
                heapq.heappop(self._booting)
                self.up += 1
            while self._leaving and self._leaving[0] <= change:
                heapq.heappop(self._leaving)
            while self._running and self._running[0][0] <= change:
                self._finish(heapq.heappop(self._running)[2], change)
            self._settle(change)
        self._pay(now)
        self._settle(now)

    def submit(self, job: SimulatedJob, now: float) -> None:
        """Put a job into the queue."""
        job.submit = now
        self.waiting.append(job)
        self._tell(now, "submit", job)
        self._settle(now)

    def resize(self, nodes: int, now: float) -> None:
        """Grow or shrink."""
        if nodes != self.size:
            self.resizes.append((now, nodes))
        self.size = nodes
        missing = nodes - self.up - len(self._booting)
        for _ in range(missing):
            heapq.heappush(self._booting, now + self.times.boot)
        self._settle(now)

    def end(self, now: float) -> None:
        """Cancel what waits, and drain all nodes."""
        self.ended = True
        self.waiting.clear()
        self.size = 0
        self._settle(now)

    def reading(self) -> MemberReading:
        """Return what is seen of it, with the events since the last reading."""
        sizes = Counter(job.nodes for job in self.waiting)
        drained = max(0, self.up - self.size)
        free = max(0, self.up - drained - self.busy)
        events, self._events = tuple(self._events), []
        return MemberReading(
            nodes=self.nodes_paid,
            size=self.size,
            nodes_up=self.up - drained,
            nodes_free=free,
            cores_up=self.up - drained,
            cores_free=free,
            queue=QueueCounts(
                sched=len(self.waiting), run=len(self._running), inactive=self.finished
            ),
            waiting=dict(sizes),
            next_jobs=tuple(job.nodes for job in islice(self.waiting, _NEXT)),
            events=events,
            spent=self.paid * self.times.price / 3600,
            price=self.times.price,
        )

    def _pay(self, now: float) -> None:
        self.paid += self.nodes_paid * (now - self._now)
        self._now = now

    def _settle(self, now: float) -> None:
        """Give back nodes that are not to be there, then start jobs."""
        while self.up + len(self._booting) > self.size and self._booting:
            # The latest first; what boots is torn down as well.
            self._booting.remove(max(self._booting))
            heapq.heapify(self._booting)
            heapq.heappush(self._leaving, now + self.times.teardown)
        while self.up > max(self.size, self.busy):
            self.up -= 1
            heapq.heappush(self._leaving, now + self.times.teardown)
        while self.waiting and self.waiting[0].nodes <= self._usable():
            self._start(self.waiting.popleft(), now)

    def _start(self, job: SimulatedJob, now: float) -> None:
        job.start = now
        self.busy += job.nodes
        self.needed += job.nodes * job.run_time
        self.started.append(job)
        number = len(self.started)
        heapq.heappush(self._running, (now + job.run_time, number, job))
        self._tell(now, "start", job, now - job.submit)

    def _usable(self) -> int:
        return min(self.up, self.size) - self.busy

    def _finish(self, job: SimulatedJob, now: float) -> None:
        self.busy -= job.nodes
        self.finished += 1
        self._tell(now, "finish", job, job.run_time)

    def _tell(
        self, now: float, name: JobEvent, job: SimulatedJob, took: float = 0.0
    ) -> None:
        """Write an event; no two have the same timestamp, as in an eventlog."""
        self._told = max(now, self._told + 1e-5)
        self._events.append(
            MemberEvent(
                at=self._told,
                name=name,
                group=job.group,
                success=job.succeeds and name == "finish",
                took=took,
            )
        )


class SimulatedIsolatedMember(SimulatedMember):
    """One such member. As in a daemon, jobs get their nodes at checks alone."""

    def __init__(self, times: NodeTimes) -> None:
        super().__init__(times)
        self._coming: list[tuple[float, int, SimulatedJob]] = []
        """When the nodes of a job that waits are up; each job with a number."""
        self._numbered = 0

    def resize(self, nodes: int, now: float) -> None:
        """Let its jobs have so many nodes; boot those of jobs for which there is room.

        As `burst_ensemble.core.member_size`: in order, and jobs that are larger
        than the member are passed over.
        """
        if nodes != self.size:
            self.resizes.append((now, nodes))
        self.size = nodes
        room = nodes - self.nodes_paid
        have = {id(job) for _, _, job in self._coming}
        for job in self.waiting:
            if id(job) in have or job.nodes > nodes:
                continue
            if job.nodes > room:
                break
            room -= job.nodes
            self._boot(job, now)

    def end(self, now: float) -> None:
        """Cancel what waits, with the nodes that boot for it; what runs goes on."""
        self._coming.clear()
        for _ in self._booting:
            heapq.heappush(self._leaving, now + self.times.teardown)
        self._booting.clear()
        super().end(now)

    def reading(self) -> MemberReading:
        """Return what is seen of it, with the events since the last reading."""
        return msgspec.structs.replace(
            super().reading(),
            size=self.nodes_paid,
            nodes_up=self.up,
            nodes_free=0,
            cores_up=self.up,
            cores_free=0,
        )

    def _boot(self, job: SimulatedJob, now: float) -> None:
        up = now + self.times.boot
        for _ in range(job.nodes):
            heapq.heappush(self._booting, up)
        self._numbered += 1
        heapq.heappush(self._coming, (up, self._numbered, job))

    def _settle(self, now: float) -> None:
        """Start jobs whose nodes are up, then give back nodes whose job has ended."""
        while self._coming and self._coming[0][0] <= now:
            job = heapq.heappop(self._coming)[2]
            # Equal jobs are not the same job.
            place = next(n for n, each in enumerate(self.waiting) if each is job)
            del self.waiting[place]
            self._start(job, now)
        while self.up > self.busy:
            self.up -= 1
            heapq.heappush(self._leaving, now + self.times.teardown)
