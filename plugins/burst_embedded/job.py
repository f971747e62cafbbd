# SPDX-License-Identifier: MIT
"""One job in the lead's queue, and the command of its jobspec (RFC 25). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.errors import JobspecError
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from burst.model.resource_set import ResourceSet
from burst_embedded.wire import Output, RunTasks

HIGHEST_URGENCY = 31
_EXPEDITED = 2**32 - 1


class Job(msgspec.Struct, kw_only=True):
    """One job and all that happened to it. Only the queue changes it."""

    id: JobId
    submitted: Mapping[str, Any]
    """The jobspec as it was submitted."""
    jobspec: Mapping[str, Any]
    """The jobspec with the constraint that it has now."""
    request: ResourceRequest
    order: RunTasks
    """The order that runs its command, for no rank yet."""
    confined_to: frozenset[int] | None
    """The lent ranks on which it may run, besides own ranks; None for all lent ranks.
    """
    duration: float
    """Its time limit in seconds; 0 for none."""
    urgency: int
    state: JobState = JobState.SCHED
    events: list[Event] = []
    R: ResourceSet | None = None
    """Its allocation, which stays after its end; None if it never had one."""
    running: dict[int, int] = {}
    """The tasks that have not ended: the broker rank of each, by task rank."""
    status: int = 0
    """The highest wait status of its tasks."""
    fatal: str = ""
    """Type of the first exception of severity 0; empty for none."""
    output: list[Output] = []

    def time_of(self, name: str) -> float:
        """Return the time of the first event of that name, 0 if there is none."""
        found = (event.timestamp for event in self.events if event.name == name)
        return next(found, 0.0)

    @property
    def priority(self) -> int:
        """The priority that the queue is sorted by, as in Flux; 0 is held."""
        return _EXPEDITED if self.urgency == HIGHEST_URGENCY else self.urgency

    @property
    def deadline(self) -> float:
        """When its time limit ends it, in seconds since the epoch; math.inf if it does
        not run or has no limit.
        """
        limited = self.state is JobState.RUN and self.duration
        return self.time_of("start") + self.duration if limited else math.inf

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state is JobState.INACTIVE

    @property
    def result(self) -> str:
        """Its result as in RFC 21; empty while it is active."""
        if not self.is_over:
            return ""
        if self.time_of("start") and self.status == 0 and not self.fatal:
            return "completed"
        return {"cancel": "canceled", "timeout": "timeout"}.get(self.fatal, "failed")


def parse_command(jobspec: Mapping[str, Any]) -> RunTasks:
    """Return the order to run the command of the job's tasks, for no job and no task.

    Raises JobspecError.
    """
    try:
        (task,) = jobspec["tasks"]
        system = jobspec["attributes"]["system"]
        if task["count"] != {"per_slot": 1}:
            raise JobspecError(
                "it asks for more than one task per slot", "the embedded lead runs one"
            )
        found = {
            "type": RunTasks.__name__,
            "job": 0,
            "tasks": (),
            "command": task["command"],
            "cwd": system.get("cwd", ""),
            "environment": system.get("environment", {}),
        }
        order = from_plain(found, RunTasks)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobspecError(f"its tasks cannot be read: {error!r}") from error
    if not order.command:
        raise JobspecError("its command is empty")
    return order
