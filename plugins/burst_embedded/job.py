# SPDX-License-Identifier: MIT
"""One job, as the lead's queue has it and as clients are sent it. Pure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.errors import MALFORMED, JobspecError
from burst.model.active_job import LONGEST_NAME, ActiveJob
from burst.model.event import Event
from burst.model.exit_status import shell_status
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.request import (
    BurstPreferences,
    ResourceRequest,
    is_burstable,
    parse_attributes,
    parse_bank,
    parse_name,
    parse_preferences,
)
from burst.model.shape import Shape
from burst_embedded.pool import Allocation
from burst_embedded.wire import OUTPUT_LIMIT

HIGHEST_URGENCY = 31
_EXPEDITED = 2**32 - 1


class Job(msgspec.Struct, kw_only=True):
    """One job and all that happened to it. Only the queue changes it."""

    id: JobId
    userid: int
    jobspec: Mapping[str, Any]
    request: ResourceRequest
    confined_to: frozenset[int] | None = None
    """Lent ranks on which it may run beside own ones; None for all."""
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
    ran_on: frozenset[int] = frozenset()
    """The ranks of its allocation, also after it ended."""
    running: dict[int, int] = {}
    """Task ranks that have not ended, and the rank each is on."""
    status: int = 0
    """The highest wait status of its tasks."""
    fatal: str = ""
    """Type of the first exception of severity 0."""
    lost_node: str = ""
    """What that exception says, if it is of a lost node."""
    output_size: int = 0
    """Bytes of its output that are kept."""

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
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state is JobState.INACTIVE

    @property
    def result(self) -> str:
        """RFC 21's result, empty while it is active."""
        if not self.is_over:
            return ""
        if self.t_start and self.status == 0:
            return "completed"
        return {"cancel": "canceled", "timeout": "timeout"}.get(self.fatal, "failed")

    @property
    def exit_code(self) -> int:
        """What a shell would return for the task with the highest status."""
        if self.is_over and not self.t_start:
            return 1
        return shell_status(os.waitstatus_to_exitcode(self.status))

    @property
    def output_cut(self) -> bool:
        """Whether it wrote more than is kept."""
        return self.output_size >= OUTPUT_LIMIT

    def active(self) -> ActiveJob:
        """Return it as a forecast needs it."""
        return ActiveJob(
            id=self.id,
            userid=self.userid,
            name=_given_name(self.jobspec)[:LONGEST_NAME],
            state=self.state,
            priority=self.priority,
            request=self.request,
            duration=self.duration,
            t_start=self.t_start,
            t_finish=self.t_finish or self.t_inactive,
            taken={
                rank: Shape(len(share.cores), len(share.gpus))
                for rank, share in self.allocation.items()
            },
        )

    def view(self, attribute: str) -> JobView:
        """Return it as the engine is shown it; `attribute` marks burstable jobs."""
        preferences, bank, unreadable = BurstPreferences(), "", ""
        try:
            preferences = parse_preferences(self.jobspec)
            bank = parse_bank(self.jobspec)
        except JobspecError as error:
            unreadable = str(error)
        changed = any(event.name == "urgency" for event in self.events)
        return JobView(
            id=self.id,
            userid=self.userid,
            state=self.state,
            urgency=self.urgency,
            priority=self.priority,
            request=None if unreadable else self.request,
            unreadable=unreadable,
            preferences=preferences,
            duration=self.duration,
            bank=bank,
            name=parse_name(self.jobspec),
            attributes=parse_attributes(self.jobspec),
            ranks=frozenset(self.allocation),
            ran_on=self.ran_on,
            t_submit=self.t_submit,
            t_start=self.t_start,
            t_finish=self.t_finish,
            result=self.result,
            lost_node=self.lost_node,
            held_at_submit=self.urgency == 0 and not changed,
            burstable=is_burstable(self.jobspec, attribute),
            confined_to=self.confined_to,
        )


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """How the instance is now, with the jobs that changed since the last one."""

    number: int
    online: frozenset[int]
    drained: Mapping[int, str]
    allocated: frozenset[int]
    free: Mapping[int, Shape]
    """What is unallocated of each rank, up or not."""
    jobs: tuple[Job, ...]


def _given_name(jobspec: Mapping[str, Any]) -> str:
    """Return the name that its user gave it; empty for none that can be read."""
    try:
        return str(jobspec["attributes"]["system"]["job"]["name"])
    except MALFORMED:
        return ""


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
