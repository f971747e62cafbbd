# SPDX-License-Identifier: MIT
"""Nodes that are bought: for how long each burst is paid, and what for."""

from __future__ import annotations

import math

import msgspec


class NodeHours(msgspec.Struct):
    """What was paid; node-seconds while it is counted, else node-hours."""

    work: float = 0.0
    idle: float = 0.0
    boot: float = 0.0
    teardown: float = 0.0

    def add(self, other: NodeHours, by: float = 1.0) -> None:
        """Count another one, times a number, in this one."""
        self.work += other.work * by
        self.idle += other.idle * by
        self.boot += other.boot * by
        self.teardown += other.teardown * by

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.work + self.idle + self.boot + self.teardown


class BoughtNodes:
    """One burst: it is paid from when it is made until it is taken down as a whole."""

    def __init__(
        self,
        nodes: int,
        made: float,
        online: float,
        userid: int,
        price: float | None = None,
    ) -> None:
        """`price` as in `Asks`."""
        self.userid = userid
        self.price = price
        self.nodes = nodes
        self.free = nodes
        self.made = made
        self.online = online
        self.jobs = 0
        self.worth = math.inf
        """The least that was asked for one of its jobs."""
        self.busy_until = online
        """When its last job ends by the time limits, or ended."""
        self.paid = NodeHours(boot=nodes * (online - made))
        self._counted = online

    def start(self, nodes: int, now: float, limit: float, worth: float) -> None:
        """Count a job on so many of its nodes, for which such a worth is asked."""
        self._count(now)
        self.worth = min(self.worth, worth)
        self.jobs += 1
        self.free -= nodes
        self.busy_until = max(self.busy_until, now + limit)

    def end(self, nodes: int, now: float) -> None:
        """Note that a job on so many of its nodes has ended."""
        self._count(now)
        self.jobs -= 1
        self.free += nodes
        if not self.jobs:
            self.busy_until = now

    def take_down(self, now: float, teardown: float) -> NodeHours:
        """Return what it was paid for, until it is gone."""
        self._count(now)
        self.paid.teardown = self.nodes * teardown
        return self.paid

    def _count(self, now: float) -> None:
        passed = now - self._counted
        self.paid.idle += self.free * passed
        self.paid.work += (self.nodes - self.free) * passed
        self._counted = now
