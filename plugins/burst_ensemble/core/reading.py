# SPDX-License-Identifier: MIT
"""What the daemon has read of a member: the one input of a step that is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from burst_ensemble.algorithm import QueueCounts

JobEvent = Literal["submit", "start", "finish", "exception"]
"""What is counted of a job, in the words of its eventlog (RFC 21). `exception`: it has
ended, and its result is not `completed`; `finish` is counted only if it ran."""


class MemberEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a job of a member, whoever submitted it."""

    at: float
    """When it was read, in seconds since the epoch."""
    name: JobEvent
    group: str
    success: bool = False
    """Of `finish`: whether the job's result is `completed`."""
    took: float = 0.0
    """Of `start`: seconds since submit. Of `finish`: seconds since start."""
    failed: bool = False
    """Of `exception`: whether the job failed before it started. It has no finish."""


class MemberReading(msgspec.Struct, frozen=True, kw_only=True):
    """A member as it is now. One that cannot be read has none: nothing is done to it.

    Of a member that is not made yet, or of which nothing is left: all 0.
    """

    nodes: int = 0
    """Nodes that are paid: made or asked for, and not confirmed as gone."""
    size: int = 0
    """Nodes that it would have once nothing is being made or drained any more."""
    nodes_up: int = 0
    """Of its nodes, those whose broker is online and that are not drained."""
    nodes_free: int = 0
    """Of these, those on which no job runs."""
    cores_up: int = 0
    cores_free: int = 0
    queue: QueueCounts = QueueCounts()
    """The member's jobs only, by state."""
    waiting: Mapping[int, int] = {}
    """Number of jobs in the states priority and sched, by nodes of each."""
    next_jobs: tuple[int, ...] = ()
    """Nodes of the first 11 of these, in the order in which Flux would start them."""
    events: tuple[MemberEvent, ...] = ()
    """Those that were not counted before. Of a reading that is taken in twice they do
    no harm: what is not later than `MemberRecord.read_until` is left out, unless all of
    it is earlier."""
    spent: float = 0.0
    """What it has cost so far, settled and running."""
    price: float = 0.0
    """Of a node and hour."""
