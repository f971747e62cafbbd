# SPDX-License-Identifier: MIT
"""One job of the embedded lead. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from burst_embedded.jobspec import Command
from burst_embedded.pool import Allocation
from burst_embedded.wire import Output

HIGHEST_URGENCY = 31
_EXPEDITED = 2**32 - 1


class EmbeddedJob(msgspec.Struct, kw_only=True):
    """One job and all that happened to it. Only the queue changes it."""

    id: JobId
    userid: int
    jobspec: Mapping[str, Any]
    request: ResourceRequest
    confined_to: frozenset[int] | None = None
    """Lent ranks on which it may run beside own ones; None for all."""
    command: Command
    duration: float
    urgency: int
    t_submit: float
    t_start: float = 0.0
    t_finish: float = 0.0
    t_inactive: float = 0.0
    state: JobState = JobState.SCHED
    events: list[Event] = []
    memo: dict[str, Any] = {}
    allocation: Allocation = {}
    hosts: tuple[str, ...] = ()
    """Of its allocation, also after it ended."""
    ran_on: frozenset[int] = frozenset()
    """The ranks of these hosts."""
    running: dict[int, int] = {}
    """Task ranks that have not ended, and the rank each is on."""
    status: int = 0
    """The highest wait status of its tasks."""
    fatal: str = ""
    """Type of the first exception of severity 0."""
    output: list[Output] = []
    output_size: int = 0

    @property
    def priority(self) -> int:
        """What the queue is sorted by; 0 is held."""
        return _EXPEDITED if self.urgency == HIGHEST_URGENCY else self.urgency

    @property
    def deadline(self) -> float:
        """When its time is over, in seconds since the epoch."""
        limited = self.state is JobState.RUN and self.duration
        return self.t_start + self.duration if limited else math.inf

    @property
    def result(self) -> str:
        """RFC 21's result, empty while it is active."""
        if self.state is not JobState.INACTIVE:
            return ""
        if self.t_start and self.status == 0:
            return "completed"
        return {"cancel": "canceled", "timeout": "timeout"}.get(self.fatal, "failed")


def merge(memo: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Merge changes deeply into a memo; None deletes a key."""
    for key, value in changes.items():
        if value is None:
            memo.pop(key, None)
        elif isinstance(value, Mapping):
            below = memo.get(key)
            memo[key] = below if isinstance(below, dict) else {}
            merge(memo[key], value)
        else:
            memo[key] = value
