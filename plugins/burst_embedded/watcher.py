# SPDX-License-Identifier: MIT
"""Jobs and ranks of the instance, as a client that watches it knows them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from burst.errors import MALFORMED, LeadGone, Unreadable
from burst.lead import MayBurst, QueueListener
from burst.model.active_job import ActiveJob
from burst.model.job_record import RecordedEvent, RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.request import is_burstable
from burst_embedded.connection import TIMEOUT_S, Connection
from burst_embedded.job import Job, Update
from burst_embedded.wire import Response

RECENT_S = 60.0
"""Jobs that ended are shown to the engine for this long."""


class Interest(msgspec.Struct, frozen=True):
    """Which jobs are of interest, and who is told of them."""

    attribute: str
    """It marks the jobs that the engine is shown."""
    known: Collection[JobId] = frozenset()
    """Others that it is shown, too."""
    listener: QueueListener | None = None
    may_burst: MayBurst | None = None
    """Tells of more jobs, while there is a listener, whether it is shown them."""
    record: RecordEvent | None = None


class InstanceWatcher:
    """The latest view of the lead. Raises LeadGone.

    Jobs that ended are dropped after `recent` seconds. A connection has one watcher:
    the last one.
    """

    def __init__(
        self,
        connection: Connection,
        interest: Interest,
        wake: Callable[[], None],
        recent: float = RECENT_S,
    ) -> None:
        self._wake = wake
        self._interest = interest
        self._recent = recent
        self._news = threading.Condition()
        self._shown: dict[JobId, JobView] = {}
        self._ended: dict[JobId, float] = {}
        self._active: dict[JobId, ActiveJob] = {}
        self._recorded: dict[JobId, int] = {}
        """How many events of each job are recorded."""
        self._update: Update | None = None
        self._connection = connection
        connection.open(self._hear, "watch")
        with self._news:
            self._await(0)

    def view(self, number: int) -> LeadView:
        """Return the view once it includes the Update of that number."""
        with self._news:
            self._await(number)
            assert self._update is not None
            self._forget()
            return LeadView(
                read_at=time.time(),
                jobs=dict(self._shown),
                online=self._update.online,
                drained=self._update.drained,
                allocated=self._update.allocated,
                free=self._update.free,
            )

    def active_jobs(self) -> Mapping[JobId, ActiveJob]:
        """Return all active jobs. Raises LeadGone, Unreadable if nobody follows."""
        with self._news:
            if self._connection.gone:
                raise self._connection.gone
            if self._interest.listener is None:
                why = "all jobs of the lead are not known"
                raise Unreadable(why, "follow_queue makes them known")
            return dict(self._active)

    def _await(self, number: int) -> None:
        """Wait for the Update of that number."""

        def is_there() -> bool:
            return self._update is not None and self._update.number >= number

        self._news.wait_for(lambda: self._connection.gone or is_there(), TIMEOUT_S)
        if self._connection.gone:
            raise self._connection.gone
        if not is_there():
            raise LeadGone("the lead does not tell what changed")

    def _hear(self, said: Response | None) -> None:
        with self._news:
            first = self._update is None
            if said:
                self._take(said.read(Update))
            self._news.notify_all()
        if not first or not said:
            self._wake()

    def _take(self, update: Update) -> None:
        if self._update is None:
            self._begin(update.jobs)
        else:
            for job in update.jobs:
                self._show(job)
                self._tell(job)
        self._update = msgspec.structs.replace(update, jobs=())

    def _begin(self, jobs: Iterable[Job]) -> None:
        """Take the jobs that exist; those of them that ended are no news."""
        oldest = time.time() - self._recent
        for job in jobs:
            if not job.is_over:
                self._active[job.id] = job.active()
                self._record(job)
            if not job.is_over or job.t_inactive >= oldest or self._is_known(job):
                self._show(job)

    def _tell(self, job: Job) -> None:
        """Tell the listener of a job that changed."""
        if self._interest.listener is None:
            return
        self._record(job)
        if job.is_over:
            self._active.pop(job.id, None)
            self._interest.listener.ended(job.active())
        else:
            self._active[job.id] = job.active()
            self._interest.listener.changed()

    def _record(self, job: Job) -> None:
        if self._interest.listener is None or self._interest.record is None:
            return
        for event in job.events[self._recorded.get(job.id, 0) :]:
            spec = job.jobspec if event.name == "submit" else None
            self._interest.record(
                RecordedEvent(
                    id=job.id,
                    timestamp=event.timestamp,
                    name=event.name,
                    context=event.context,
                    jobspec=_without_environment(spec) if spec else msgspec.UNSET,
                )
            )
        self._recorded[job.id] = len(job.events)
        if job.is_over:
            del self._recorded[job.id]

    def _show(self, job: Job) -> None:
        """Show a job to the engine, if it is one of those that it is shown."""
        attribute = self._interest.attribute
        marked = is_burstable(job.jobspec, attribute) or self._is_known(job)
        if not marked and not self._may_burst(job):
            return
        self._shown[job.id] = job.view(attribute)
        if job.is_over:
            self._ended.setdefault(job.id, time.monotonic())

    def _is_known(self, job: Job) -> bool:
        return job.id in self._interest.known

    def _may_burst(self, job: Job) -> bool:
        if self._interest.listener is None or self._interest.may_burst is None:
            return False
        try:
            return self._interest.may_burst(job.userid, job.jobspec)
        except MALFORMED:
            return False

    def _forget(self) -> None:
        """Drop jobs that ended a while ago."""
        oldest = time.monotonic() - self._recent
        for job_id in [each for each, ended in self._ended.items() if ended < oldest]:
            del self._shown[job_id], self._ended[job_id]


def _without_environment(jobspec: Mapping[str, Any]) -> msgspec.Raw:
    """Return a jobspec as JSON, without the environment, as Flux's journal has it."""
    attributes = jobspec.get("attributes", {})
    system = {**attributes.get("system", {})}
    system.pop("environment", None)
    redacted = {**jobspec, "attributes": {**attributes, "system": system}}
    return msgspec.Raw(msgspec.json.encode(redacted))
