# SPDX-License-Identifier: MIT
"""The state of a job (RFC 21) from its events in the job manager's journal.

This module needs no Flux bindings. A `JournalJob` holds what is known of a burstable
job; `JournalJob.apply` takes in one event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.errors import MALFORMED, JobspecError
from burst.model.accounting import LIMIT_DEPENDENCIES
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.repeat import lost_node
from burst.model.request import (
    BurstPreferences,
    ResourceRequest,
    is_burstable,
    parse_attributes,
    parse_bank,
    parse_confinement,
    parse_duration,
    parse_name,
    parse_preferences,
    parse_queue,
    parse_request,
    unreadable,
)
from burst.model.resource_set import ResourceSet

EVENTS = (
    "submit",
    "validate",
    "dependency-add",
    "dependency-remove",
    "depend",
    "priority",
    "urgency",
    "jobspec-update",
    "flux-restart",
    "alloc",
    "prolog-start",
    "prolog-finish",
    "start",
    "finish",
    "epilog-start",
    "epilog-finish",
    "exception",
    "free",
    "clean",
    "invalidate",
    "annotations",
)
"""Events that change a job; the journal is asked for no others."""

_FATAL = 0
_RESULTS = {"cancel": "canceled", "timeout": "timeout"}
_WAITING = (JobState.PRIORITY, JobState.SCHED)
_ANNOTATIONS = "annotations"
_BACK = {JobState.SCHED: JobState.PRIORITY}
_END = dict.fromkeys(JobState, JobState.INACTIVE)
_NEXT: Mapping[str, Mapping[JobState, JobState]] = {
    "validate": dict.fromkeys(JobState, JobState.DEPEND),
    "depend": {JobState.DEPEND: JobState.PRIORITY},
    "priority": dict.fromkeys(_WAITING, JobState.SCHED),
    "urgency": _BACK,
    "jobspec-update": _BACK,
    "flux-restart": _BACK,
    "alloc": {JobState.SCHED: JobState.RUN},
    "finish": {JobState.RUN: JobState.CLEANUP},
    "clean": _END,
    "invalidate": _END,  # refused after all; there is no such job
}
"""By event: the state after it, by the state before. Other states stay."""


class JournalEvent(msgspec.Struct, gc=False):
    """An RFC 18 event as the journal sends it."""

    timestamp: float
    name: str
    context: dict[str, Any] = {}


def changes_job(event: JournalEvent) -> bool:
    """Tell whether an event may change a `JournalJob`.

    Schedulers annotate jobs often, which changes nothing here. But null removes all
    annotations, and with them the memos.
    """
    return event.name != _ANNOTATIONS or event.context.get(_ANNOTATIONS) is None


def next_state(state: JobState, event: JournalEvent) -> JobState:
    """Return the state of a job after an event (RFC 21).

    An event that RFC 21 does not expect in this state changes nothing.
    """
    if event.name == "exception" and event.context["severity"] == _FATAL:
        return state if state is JobState.INACTIVE else JobState.CLEANUP
    return _NEXT.get(event.name, {}).get(state, state)


class _Demand(msgspec.Struct, frozen=True):
    """What the engine needs of a jobspec."""

    request: ResourceRequest | None
    preferences: BurstPreferences = BurstPreferences()
    duration: float = 0.0
    queue: str = ""
    bank: str = ""
    name: str = ""
    attributes: Mapping[str, str] = {}
    confined_to: frozenset[int] | None = None
    unreadable: str = ""


class JournalJob(msgspec.Struct):
    """What is known of one burstable job; `view` returns what the engine needs."""

    id: JobId
    jobspec: bytes
    """The jobspec with all updates, as JSON: a fifth of the size of parsed values."""
    demand: _Demand
    state: JobState = JobState.DEPEND
    userid: int = 0
    urgency: int = 16
    priority: int = 0
    ranks: frozenset[int] = frozenset()
    ran_on: frozenset[int] = frozenset()
    t_submit: float = 0.0
    t_eligible: float = 0.0
    t_start: float = 0.0
    t_finish: float = 0.0
    prologs: dict[str, float] = {}
    epilogs: dict[str, float] = {}
    succeeded: bool = False
    fatal: str = ""
    """Type of the first fatal exception; empty if there was none."""
    lost_node: str = ""
    held_at_submit: bool = False
    memos_dropped: int = 0
    burstable: bool = True
    dependencies: tuple[str, ...] = ()
    unreadable: str = ""
    """Why events of the job cannot be read (RFC 21); empty if they can."""
    _view: JobView | None = None

    def apply(self, event: JournalEvent, allocation: ResourceSet | None) -> None:
        """Take in one event; `allocation` is the R that came with it, if any.

        Events that change nothing here are ignored, as are events that RFC 21 does not
        expect in this state.
        """
        if event.name not in EVENTS or not changes_job(event):
            return
        self._view = None
        try:
            if event.name in _CHANGES:
                _CHANGES[event.name](self, event)
            self.state = next_state(self.state, event)
            if event.name == "alloc" and allocation is not None:
                self.ranks = self.ran_on = allocation.ranks
        except MALFORMED as error:
            self.mark_unreadable(str(unreadable(f"event {event.name}", error)))

    def mark_unreadable(self, why: str) -> None:
        """Note that the job cannot be read; the engine then never acts on it."""
        self._view = None
        self.unreadable = self.unreadable or why

    def view(self) -> JobView:
        """Return the job as a value: the same object until an event changes it."""
        if self._view is None:
            self._view = JobView(
                id=self.id,
                userid=self.userid,
                state=self.state,
                urgency=self.urgency,
                priority=self.priority,
                request=None if self.unreadable else self.demand.request,
                unreadable=self.unreadable or self.demand.unreadable,
                preferences=self.demand.preferences,
                duration=self.demand.duration,
                queue=self.demand.queue,
                bank=self.demand.bank,
                name=self.demand.name,
                attributes=self.demand.attributes,
                ranks=self.ranks,
                ran_on=self.ran_on,
                t_submit=self.t_submit,
                t_eligible=self.t_eligible,
                t_start=self.t_start,
                t_finish=self.t_finish,
                prologs=self.prologs,
                epilogs=self.epilogs,
                result=self._result(),
                lost_node=self.lost_node,
                held_at_submit=self.held_at_submit,
                memos_dropped=self.memos_dropped,
                burstable=self.burstable,
                dependencies=self.dependencies,
                confined_to=self.demand.confined_to,
            )
        return self._view

    def _result(self) -> str:
        """Return what `flux jobs` shows as the result of an inactive job."""
        if self.state is not JobState.INACTIVE:
            return ""
        return "completed" if self.succeeded else _RESULTS.get(self.fatal, "failed")


def job_from_jobspec(
    job: JobId,
    jobspec: bytes,
    is_wanted: Callable[[Mapping[str, Any]], bool] = lambda _: False,
) -> JournalJob | None:
    """Return a job without any event yet, or None if it is not burstable.

    A job that is not burstable is returned, too, if `is_wanted` accepts its jobspec.
    """
    try:
        spec = msgspec.json.decode(jobspec)
    except MALFORMED as error:
        # The job may be burstable or not; the engine never acts on an unreadable one.
        why = str(unreadable("jobspec", error))
        return JournalJob(job, jobspec, _Demand(None, unreadable=why))
    burstable = is_burstable(spec)
    if not burstable:
        try:
            if not is_wanted(spec):
                return None
        except MALFORMED:
            return None
    return JournalJob(job, jobspec, _demand(spec), burstable=burstable)


def _demand(spec: Any) -> _Demand:
    try:
        return _Demand(
            request=parse_request(spec),
            preferences=parse_preferences(spec),
            duration=parse_duration(spec),
            queue=parse_queue(spec),
            bank=parse_bank(spec),
            name=parse_name(spec),
            attributes=parse_attributes(spec),
            confined_to=parse_confinement(spec),
        )
    except JobspecError as error:
        confined_to = parse_confinement(spec)
        return _Demand(request=None, confined_to=confined_to, unreadable=str(error))


def _submit(job: JournalJob, event: JournalEvent) -> None:
    job.t_submit = event.timestamp
    job.userid = int(event.context["userid"])
    job.urgency = int(event.context["urgency"])
    job.held_at_submit = job.urgency == 0


def _dependency_add(job: JournalJob, event: JournalEvent) -> None:
    name = str(event.context["description"])
    if name in LIMIT_DEPENDENCIES and name not in job.dependencies:
        job.dependencies += (name,)


def _dependency_remove(job: JournalJob, event: JournalEvent) -> None:
    gone = event.context["description"]
    job.dependencies = tuple(each for each in job.dependencies if each != gone)


def _depend(job: JournalJob, event: JournalEvent) -> None:
    if job.state is JobState.DEPEND:
        job.t_eligible = event.timestamp


def _priority(job: JournalJob, event: JournalEvent) -> None:
    if job.state in _WAITING:
        job.priority = int(event.context["priority"])


def _urgency(job: JournalJob, event: JournalEvent) -> None:
    job.urgency = int(event.context["urgency"])
    job.held_at_submit = False


def _jobspec_update(job: JournalJob, event: JournalEvent) -> None:
    spec = msgspec.json.decode(job.jobspec)
    for path, value in event.context.items():
        *above, last = path.split(".")
        place = spec
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
    job.jobspec = msgspec.json.encode(spec)
    job.demand = _demand(spec)


def _prolog_start(job: JournalJob, event: JournalEvent) -> None:
    job.prologs = _with_script(job.prologs, event)


def _prolog_finish(job: JournalJob, event: JournalEvent) -> None:
    job.prologs = _without_script(job.prologs, event)


def _epilog_start(job: JournalJob, event: JournalEvent) -> None:
    job.epilogs = _with_script(job.epilogs, event)


def _epilog_finish(job: JournalJob, event: JournalEvent) -> None:
    job.epilogs = _without_script(job.epilogs, event)


def _with_script(scripts: dict[str, float], event: JournalEvent) -> dict[str, float]:
    """Return the scripts that run after one has begun, with their start times."""
    return {**scripts, str(event.context["description"]): event.timestamp}


def _without_script(scripts: dict[str, float], event: JournalEvent) -> dict[str, float]:
    """Return the scripts that still run after one has ended."""
    over = event.context["description"]
    return {name: at for name, at in scripts.items() if name != over}


def _start(job: JournalJob, event: JournalEvent) -> None:
    job.t_start = event.timestamp


def _finish(job: JournalJob, event: JournalEvent) -> None:
    job.t_finish = event.timestamp
    job.succeeded = event.context["status"] == 0 and not job.fatal


def _exception(job: JournalJob, event: JournalEvent) -> None:
    if event.context["severity"] == _FATAL and job.state is not JobState.INACTIVE:
        kind, note = str(event.context["type"]), str(event.context.get("note", ""))
        if not job.fatal:
            job.fatal, job.lost_node = kind, lost_node(kind, note)


def _free(job: JournalJob, _event: JournalEvent) -> None:
    job.ranks = frozenset()


def _annotations(job: JournalJob, _event: JournalEvent) -> None:
    job.memos_dropped += 1


_CHANGES: Mapping[str, Callable[[JournalJob, JournalEvent], None]] = {
    "submit": _submit,
    "dependency-add": _dependency_add,
    "dependency-remove": _dependency_remove,
    "depend": _depend,
    "priority": _priority,
    "urgency": _urgency,
    "jobspec-update": _jobspec_update,
    "prolog-start": _prolog_start,
    "prolog-finish": _prolog_finish,
    "epilog-start": _epilog_start,
    "epilog-finish": _epilog_finish,
    "start": _start,
    "finish": _finish,
    "exception": _exception,
    "free": _free,
    "clean": _free,
    "invalidate": _free,
    _ANNOTATIONS: _annotations,
}
