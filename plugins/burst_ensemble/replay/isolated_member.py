# SPDX-License-Identifier: MIT
"""An isolated member of an ensemble in simulation: each job boots nodes of its own."""

from __future__ import annotations

import heapq

import msgspec

from burst_ensemble.core.reading import MemberReading
from burst_ensemble.replay.member import NodeTimes, SimulatedJob, SimulatedMember


class SimulatedIsolatedMember(SimulatedMember):
    """One such member. As in a daemon, jobs get their nodes at checks alone."""

    def __init__(self, times: NodeTimes) -> None:
        super().__init__(times)
        self._coming: list[tuple[float, int, SimulatedJob]] = []
        """When the nodes of a job that waits are up; each job with a number."""
        self._numbered = 0

    def resize(self, nodes: int, now: float) -> None:
        """Let its jobs have so many nodes; boot those of jobs for which there is room.

        As `burst_ensemble.core.isolated_member`: in order, and jobs that are larger
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
