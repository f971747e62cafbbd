# SPDX-License-Identifier: MIT
"""A member of an ensemble in simulation: nodes that boot and are drained, and a queue.

Jobs have whole nodes, and start in the order in which they were submitted. Nodes take
time to boot, and a node that is given back is paid until it is torn down.
Each job of an isolated member boots nodes of its own.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

import msgspec
from burst_ensemble.core.job_rows import JobRow, JobsSeen, MemberState, count_jobs
from burst_ensemble.core.record import MemberRecord

from burst.model.jobid import JobId
from burst.model.lead import JobState


class SimulatedJob(msgspec.Struct):
    """One job. Times are those of the simulation, 0 for what has not happened yet."""

    group: str
    nodes: int
    run_time: float
    succeeds: bool = True
    id: JobId = JobId(0)
    submit: float = 0.0
    start: float = 0.0
    finish: float = 0.0

    def row(self) -> JobRow:
        """Return the job as a lead shows it."""
        state = JobState.RUN if self.start else JobState.SCHED
        result = "completed" if self.succeeds else "failed"
        return JobRow(
            id=self.id,
            state=JobState.INACTIVE if self.finish else state,
            group=self.group,
            nodes=self.nodes,
            urgency=16,
            t_submit=self.submit,
            t_start=self.start,
            t_finish=self.finish,
            result=result if self.finish else "",
        )


class NodeTimes(msgspec.Struct, frozen=True):
    """How long a node boots and is torn down, and what it costs."""

    boot: float = 300.0
    """Seconds from the request to online."""
    teardown: float = 60.0
    """Seconds for which a node is paid after it was given back."""
    price: float = 1.0
    """The price of a node for an hour."""


class SimulatedMember:
    """One member, with everything that `burst_ensemble.core` reads of it."""

    def __init__(self, times: NodeTimes) -> None:
        self.times = times
        self.size = 0
        """The size that was decided last, in nodes."""
        self.up = 0
        """Nodes that are online, including those that are being drained."""
        self.busy = 0
        self.ended = False
        self.waiting: deque[SimulatedJob] = deque()
        self.started: list[SimulatedJob] = []
        self.paid = 0.0
        """Node-seconds that were paid."""
        self.needed = 0.0
        """Node-seconds of the jobs that have started."""
        self.changes = 0
        """How often its size was changed."""
        self._now = 0.0
        self._booting: deque[float] = deque()
        """When each node that boots is up, the first at the front: all boot equally
        long."""
        self._leaving: deque[float] = deque()
        self._running: list[tuple[float, JobId, SimulatedJob]] = []
        self._ended: list[SimulatedJob] = []
        """Jobs that have ended since the last reading."""
        self._numbered = 0

    @property
    def nodes_paid(self) -> int:
        """Nodes that are paid now: online, booting or being torn down."""
        return self.up + len(self._booting) + len(self._leaving)

    def advance(self, now: float) -> None:
        """Simulate all events up to a time."""
        while (change := self._next_change()) <= now:
            self._pay(change)
            while self._booting and self._booting[0] <= change:
                self._booting.popleft()
                self.up += 1
            while self._leaving and self._leaving[0] <= change:
                self._leaving.popleft()
            while self._running and self._running[0][0] <= change:
                job = heapq.heappop(self._running)[2]
                self.busy -= job.nodes
                job.finish = change
                self._ended.append(job)
            self._settle(change)
        self._pay(now)
        self._settle(now)

    def submit(self, job: SimulatedJob, now: float) -> None:
        """Put a job into the queue."""
        self._numbered += 1
        job.id, job.submit = JobId(self._numbered), now
        self.waiting.append(job)
        self._settle(now)

    def resize(self, nodes: int, now: float) -> None:
        """Grow or shrink."""
        self.changes += nodes != self.size
        self.size = nodes
        self._boot(nodes - self.up - len(self._booting), now)
        self._settle(now)

    def end(self, now: float) -> None:
        """Cancel waiting jobs, and drain all nodes."""
        self.ended = True
        self.waiting.clear()
        self.size = 0
        self._settle(now)

    def read(self, before: MemberRecord, now: float) -> MemberState:
        """Return a reading of the member, with the jobs that ended since the last one;
        `before` is its record.
        """
        running = (job for _, _, job in self._running)
        rows = [job.row() for job in (*self._ended, *running, *self.waiting)]
        self._ended = []
        counted = count_jobs(before, JobsSeen(rows, {}), now)
        reading = msgspec.structs.replace(
            counted.reading,
            nodes_paid=self.nodes_paid,
            spent=self.paid * self.times.price / 3600,
            price=self.times.price,
            **self._nodes(),
        )
        return MemberState(reading, counted.member)

    def _nodes(self) -> dict[str, int]:
        """Return the size, and how many nodes are up and free; each has one core."""
        up = min(self.up, self.size)
        free = max(0, up - self.busy)
        return {
            "size": self.size,
            "nodes_up": up,
            "nodes_free": free,
            "cores_up": up,
            "cores_free": free,
        }

    def _pay(self, now: float) -> None:
        self.paid += self.nodes_paid * (now - self._now)
        self._now = now

    def _next_change(self) -> float:
        """Return the time of the next event; infinity if there is none."""
        changes = [line[0] for line in (self._booting, self._leaving) if line]
        changes += [end for end, *_ in self._running[:1]]
        return min(changes, default=math.inf)

    def _boot(self, nodes: int, now: float) -> None:
        self._booting.extend([now + self.times.boot] * nodes)

    def _leave(self, nodes: int, now: float) -> None:
        self._leaving.extend([now + self.times.teardown] * nodes)

    def _settle(self, now: float) -> None:
        """Give back nodes beyond the size, then start jobs."""
        while self.up + len(self._booting) > self.size and self._booting:
            # The latest first; a node that still boots is torn down as well.
            self._booting.pop()
            self._leave(1, now)
        drained = max(0, self.up - max(self.size, self.busy))
        self.up -= drained
        self._leave(drained, now)
        while self.waiting and self.waiting[0].nodes <= self._usable():
            self._start(self.waiting.popleft(), now)

    def _start(self, job: SimulatedJob, now: float) -> None:
        job.start = now
        self.busy += job.nodes
        self.needed += job.nodes * job.run_time
        self.started.append(job)
        heapq.heappush(self._running, (now + job.run_time, job.id, job))

    def _usable(self) -> int:
        return min(self.up, self.size) - self.busy


class SimulatedIsolatedMember(SimulatedMember):
    """An isolated member. As in a daemon, jobs get their nodes only at checks."""

    def __init__(self, times: NodeTimes) -> None:
        super().__init__(times)
        self._coming: deque[tuple[float, SimulatedJob]] = deque()
        """The waiting jobs whose nodes boot, each with the time when these are up, the
        first at the front."""

    def resize(self, nodes: int, now: float) -> None:
        """Set the size, and boot the nodes of waiting jobs that fit in it.

        As in `burst.core.tagged_jobs`, jobs get nodes in order, and jobs larger than
        the member are skipped.
        """
        self.changes += nodes != self.size
        self.size = nodes
        room = nodes - self.nodes_paid
        have = {job.id for _, job in self._coming}
        for job in self.waiting:
            if job.id in have or job.nodes > nodes:
                continue
            if job.nodes > room:
                break
            room -= job.nodes
            self._boot(job.nodes, now)
            self._coming.append((now + self.times.boot, job))

    def end(self, now: float) -> None:
        """Cancel waiting jobs and the nodes that boot for them; others run on."""
        self._coming.clear()
        self._leave(len(self._booting), now)
        self._booting.clear()
        super().end(now)

    def _nodes(self) -> dict[str, int]:
        return {"size": self.nodes_paid, "nodes_up": self.up, "cores_up": self.up}

    def _settle(self, now: float) -> None:
        """Start jobs whose nodes are up, then give back nodes whose job has ended."""
        while self._coming and self._coming[0][0] <= now:
            _, job = self._coming.popleft()
            self.waiting.remove(job)
            self._start(job, now)
        self._leave(self.up - self.busy, now)
        self.up = self.busy
