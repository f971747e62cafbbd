# SPDX-License-Identifier: MIT
"""One job, as the lead's queue has it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from burst.model.resource_set import ResourceSet
from burst_embedded.wire import Output

HIGHEST_URGENCY = 31
_EXPEDITED = 2**32 - 1


class Job(msgspec.Struct, kw_only=True):
    """One job and all that happened to it. Only the queue changes it."""

    id: JobId
    submitted: Mapping[str, Any]
    """The jobspec, without what confines it."""
    jobspec: Mapping[str, Any]
    request: ResourceRequest
    confined_to: frozenset[int] | None
    """Lent ranks on which it may run beside own ones; None for all."""
    duration: float
    urgency: int
    state: JobState = JobState.SCHED
    events: list[Event] = []
    R: ResourceSet | None = None
    """What it was allocated, also after it ended."""
    running: dict[int, int] = {}
    """Task ranks that have not ended, and the rank each is on."""
    status: int = 0
    """The highest wait status of its tasks."""
    fatal: str = ""
    """Type of the first exception of severity 0."""
    output: list[Output] = []

    def time_of(self, name: str) -> float:
        """Return when the first event of that name was, 0 if there is none."""
        found = (event.timestamp for event in self.events if event.name == name)
        return next(found, 0.0)

    @property
    def priority(self) -> int:
        """What the queue is sorted by, as Flux has it; 0 is held."""
        return _EXPEDITED if self.urgency == HIGHEST_URGENCY else self.urgency

    @property
    def deadline(self) -> float:
        """When its time is over, in seconds since the epoch."""
        limited = self.state is JobState.RUN and self.duration
        return self.time_of("start") + self.duration if limited else math.inf

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state is JobState.INACTIVE

    @property
    def result(self) -> str:
        """RFC 21's result, empty while it is active."""
        if not self.is_over:
            return ""
        if self.time_of("start") and self.status == 0:
            return "completed"
        return {"cancel": "canceled", "timeout": "timeout"}.get(self.fatal, "failed")
