# SPDX-License-Identifier: MIT
"""The table of all active jobs, burstable or not, from the job manager's journal.

For each job only an ActiveJob is kept, of 300 bytes. Of the text that its user wrote,
it has a short name only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from burst.decode import json_decoder
from burst.errors import MALFORMED, JobspecError
from burst.flux.job_state import JournalEvent, next_state
from burst.lead import QueueListener
from burst.model.active_job import LONGEST_NAME, ActiveJob
from burst.model.constraint import canonical
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED
from burst.model.request import ResourceRequest, parse_request
from burst.model.resource_set import ResourceSet
from burst.model.shape import Shape

# Parsed requests are kept for other jobs with the same text, up to so many bytes of it.
_LONGEST_TEXT = 2048
_DURATION = "attributes.system.duration"
_QUEUE = "attributes.system.queue"
_CONSTRAINTS = "attributes.system.constraints"


class _Job(msgspec.Struct):
    name: str | None = None


class _System(msgspec.Struct):
    duration: float | None = None
    queue: str | None = None
    job: _Job | None = None
    constraints: msgspec.Raw = msgspec.Raw(b"null")


class _Attributes(msgspec.Struct):
    system: _System | None = None


class _Jobspec(msgspec.Struct):
    resources: msgspec.Raw
    attributes: _Attributes | None = None


_JOBSPEC = json_decoder(_Jobspec)

Change = dict[str, Any]
"""Fields of an ActiveJob, and what they are after an event."""


class QueueTable:
    """All active jobs after the last event. Use from one thread."""

    def __init__(self, listener: QueueListener) -> None:
        self._listener = listener
        self._jobs: dict[int, ActiveJob] = {}

    def jobs(self) -> list[ActiveJob]:
        """Return all jobs that are known."""
        return list(self._jobs.values())

    def job(self, number: JobId) -> ActiveJob | None:
        """Return one job; None if it is not known."""
        return self._jobs.get(number)

    def clear(self) -> None:
        """Forget all jobs: they are read again."""
        self._jobs.clear()
        self._listener.lost()

    def take(
        self,
        number: int,
        events: Sequence[JournalEvent],
        jobspec: msgspec.Raw,
        allocation: ResourceSet | None,
    ) -> None:
        """Take in a response of the journal, which is about one job."""
        job = self._jobs.get(number)
        if job is None:
            if not jobspec:
                return
            job = _new_job(JobId(number), bytes(jobspec))
        change = _change(job, events)
        if allocation is not None and change.get("state") in ALLOCATED:
            change["taken"] = _shapes(allocation)
        after = msgspec.structs.replace(job, **change) if change else job
        if any(event.name in _OVER for event in events):
            self._jobs.pop(number, None)
            self._listener.ended(after)
        elif after is not job or number not in self._jobs:
            self._jobs[number] = after
            self._listener.changed()


def _change(job: ActiveJob, events: Sequence[JournalEvent]) -> Change:
    """Return what the events change of a job."""
    change: Change = {}
    state = job.state
    for event in events:
        try:
            if event.name in _CHANGES:
                _CHANGES[event.name](job, change, event)
            state = next_state(state, event)
        except (JobspecError, *MALFORMED):
            # Its place in line is not known; it is shown as held.
            change["priority"] = 0
    return change if state is job.state else {**change, "state": state}


def _new_job(number: JobId, text: bytes) -> ActiveJob:
    """Return a job without any event yet."""
    try:
        jobspec = _JOBSPEC.decode(text)
    except MALFORMED:
        return ActiveJob(id=number, userid=0, name="")
    attributes = jobspec.attributes or _Attributes()
    system = attributes.system or _System()
    name = system.job.name if system.job else None
    return ActiveJob(
        id=number,
        userid=0,
        name=_shared_name((name or "")[:LONGEST_NAME]),
        queue=sys.intern(system.queue or ""),
        request=_request(bytes(jobspec.resources), bytes(system.constraints)),
        duration=max(0.0, system.duration or 0.0),
    )


def _request(resources: bytes, constraints: bytes) -> ResourceRequest | None:
    if len(resources) + len(constraints) > _LONGEST_TEXT:
        return _parse_request(resources, constraints)
    return _cached_request(resources, constraints)


def _parse_request(resources: bytes, constraints: bytes) -> ResourceRequest | None:
    try:
        found = msgspec.json.decode(constraints)
        system = {"constraints": found} if found else {}
        jobspec = {
            "resources": msgspec.json.decode(resources),
            "attributes": {"system": system},
        }
        return parse_request(jobspec)
    except (JobspecError, *MALFORMED):
        return None


_cached_request = lru_cache(maxsize=4096)(_parse_request)


@lru_cache(maxsize=4096)
def _shared_name(name: str) -> str:
    """Return one object for equal names; `sys.intern` would keep a row for each."""
    return name


def _shapes(allocation: ResourceSet) -> dict[int, Shape]:
    """Return how much of each rank an allocation has; empty if it is malformed."""
    try:
        return {
            rank: Shape(len(group.ids("core")), len(group.ids("gpu")))
            for group in allocation.groups
            for rank in group.ranks
        }
    except ValueError:
        return {}


def _submit(_job: ActiveJob, change: Change, event: JournalEvent) -> None:
    change["userid"] = int(event.context["userid"])


def _priority(_job: ActiveJob, change: Change, event: JournalEvent) -> None:
    change["priority"] = int(event.context["priority"])


def _jobspec_update(job: ActiveJob, change: Change, event: JournalEvent) -> None:
    for path, value in event.context.items():
        if path == _DURATION:
            change["duration"] = max(0.0, float(value or 0.0))
        elif path == _QUEUE:
            change["queue"] = sys.intern(str(value or ""))
        elif path == _CONSTRAINTS and job.request is not None:
            constraint = canonical(value) if value else ""
            request = msgspec.structs.replace(job.request, constraint=constraint)
            change["request"] = request


def _start(_job: ActiveJob, change: Change, event: JournalEvent) -> None:
    change["t_start"] = event.timestamp


def _finish(_job: ActiveJob, change: Change, event: JournalEvent) -> None:
    change["t_finish"] = event.timestamp


def _over(job: ActiveJob, change: Change, event: JournalEvent) -> None:
    if not change.get("t_finish", job.t_finish):
        # Its tasks never began.
        change["t_finish"] = event.timestamp


_CHANGES: Mapping[str, Callable[[ActiveJob, Change, JournalEvent], None]] = {
    "submit": _submit,
    "priority": _priority,
    "jobspec-update": _jobspec_update,
    "alloc": _start,  # so that a job with a prolog has a start, too
    "start": _start,
    "finish": _finish,
    "free": _over,
    "clean": _over,
    "invalidate": _over,
}
_OVER = frozenset({"free", "clean", "invalidate"})
