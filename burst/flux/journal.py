# SPDX-License-Identifier: MIT
"""The table of burstable jobs, kept by following the job manager's journal.

The journal (job-manager.events-journal, in Flux's src/modules/job-manager/journal.c)
first sends every active job with all its events, then a response with id -1, then each
event as it happens. Most responses are about jobs that are not burstable, so a response
is parsed only if its text contains the attribute or its job is known already. All
responses are parsed while all active jobs are followed (`follow_queue`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from burst.decode import json_decoder
from burst.errors import BurstError, Denied, Unreadable
from burst.flux.job_state import (
    EVENTS,
    JournalEvent,
    JournalJob,
    changes_job,
    job_from_jobspec,
)
from burst.flux.loop import Loop
from burst.flux.queue_table import QueueTable
from burst.flux.shown_ends import ShownEnds
from burst.flux.stream import Stream
from burst.lead import KnownJobs, MayBurst, QueueListener, no_known_jobs
from burst.model.active_job import ActiveJob
from burst.model.job_record import RecordedEvent, RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.request import BURSTABLE
from burst.model.resource_set import ResourceSet

_MARK = msgspec.json.encode(BURSTABLE)
"""What is in the text of the jobspec of each burstable job."""
SYNC_DEADLINE_S = 120.0
"""How long the backlog of events may take; 100,000 jobs take five seconds."""
PICTURE_DEADLINE_S = 30.0
"""How long the job manager may take to answer a ping, its earlier work included."""

SOON_S = 0.1
"""How long to delay the wake-up for a change of a job that is not ready yet."""

_T = TypeVar("_T")
_NOT_READY = (JobState.DEPEND, JobState.PRIORITY)
_TOPIC = "job-manager.events-journal"
_PING = "job-manager.ping"
_REQUEST = {"full": False, "allow": dict.fromkeys(EVENTS, 1)}
_SENTINEL = -1
# jansson keeps the order in which the job manager packs: the id comes first.
_ID = re.compile(rb'\{"id":\s*(\d+)')


class _Head(msgspec.Struct, gc=False):
    id: int


class _Entry(msgspec.Struct):
    id: int
    events: list[JournalEvent]
    jobspec: msgspec.Raw = msgspec.Raw()
    R: ResourceSet | None = None


class _Ended(msgspec.Struct):
    eventlog: list[JournalEvent]
    jobspec: msgspec.Raw
    R: ResourceSet | None = None


def _recorded(entry: _Entry, event: JournalEvent) -> RecordedEvent:
    """Return an event with the jobspec or R that the journal sent with it."""
    unset = msgspec.UNSET
    jobspec = entry.jobspec if event.name == "submit" and entry.jobspec else unset
    allocation = entry.R if event.name == "alloc" and entry.R else unset
    return RecordedEvent(
        id=JobId(entry.id),
        timestamp=event.timestamp,
        name=event.name,
        context=event.context,
        # Copied: the decoded jobspec is a view of the message, which is freed before
        # the event is recorded.
        jobspec=msgspec.Raw(bytes(jobspec)) if jobspec else unset,
        R=allocation,
    )


_HEAD = json_decoder(_Head)
_ENTRY = json_decoder(_Entry)
_ENDED = json_decoder(_Ended)


class Journal:
    """The burstable jobs after the last event. Its state is for the loop's thread."""

    def __init__(
        self,
        loop: Loop,
        wake: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        picture_deadline_s: float = PICTURE_DEADLINE_S,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._picture_deadline_s = picture_deadline_s
        self._read_known = no_known_jobs
        self._known: frozenset[JobId] = frozenset()
        """Jobs that are shown although they may not be burstable; as of when all jobs
        were last begun to be read."""
        self.missing: frozenset[JobId] = frozenset()
        """Those of them that the journal did not send, as they had ended: `take_ended`
        shows them."""
        self._wake = wake
        self._jobs: dict[int, JournalJob] = {}
        self._views: dict[JobId, JobView] = {}
        """What `job_views` returned last; the views of `_changed` are out of date."""
        self._changed: set[JobId] = set()
        self._ended = ShownEnds()
        self._synced = False
        self._waking = False
        """Whether a wake-up for jobs that are not ready is on its way."""
        self.events = 0
        """How many responses have come, each with events of a job, burstable or not."""
        self._first: Future[None] = Future()
        self._stream = Stream(loop, _TOPIC, _REQUEST, self._take, self._broken)
        self._table: QueueTable | None = None
        """All active jobs; None if nobody follows them."""
        self._may_burst: MayBurst | None = None
        self._record: RecordEvent | None = None

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None,
        record: RecordEvent | None = None,
    ) -> None:
        """See `burst.lead.WholeQueue`; before `start`, or from the loop's thread."""
        self._table = QueueTable(listener) if listener else None
        self._may_burst = may_burst if listener else None
        self._record = record if listener else None

    def start(self, known: KnownJobs = no_known_jobs) -> None:
        """Begin to follow the journal; return once all existing jobs are known.

        The jobs that `known` returns are shown although they may not be burstable. It
        is called again, on the loop's thread, each time the jobs are read again.

        Raises Denied to guests, Unreadable, LeadGone.
        """
        self._read_known = known
        self._known = frozenset(known())

        def begin(first: Future[None]) -> None:
            self._first = first
            self._stream.open()

        self._loop.wait_for(begin, SYNC_DEADLINE_S, "reading the journal of jobs")

    def restart(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None,
        record: RecordEvent | None = None,
    ) -> None:
        """Change how the queue is followed; return once the jobs are read again.

        Raises Unreadable, LeadGone.
        """

        def begin(first: Future[None]) -> None:
            self._first = first
            self._stream.close()
            self._read_again()
            self.follow_queue(listener, may_burst, record)
            self._stream.open()

        self._loop.wait_for(begin, SYNC_DEADLINE_S, "reading the journal of jobs")

    def take_ended(
        self, jobs: frozenset[JobId], entries: Mapping[JobId, bytes]
    ) -> None:
        """Show jobs that were missing, with what `read_ended` returned for them.

        A job that has not ended by these events is left out: the journal sends it.
        """

        def take(done: Future[None]) -> None:
            self.missing -= jobs
            for number, payload in entries.items():
                if number in self._jobs:
                    continue
                # What the job's user wrote may nest too deeply to be read.
                with suppress(RecursionError):
                    found = _ENDED.decode(payload)
                    entry = _Entry(number, found.eventlog, found.jobspec, found.R)
                    self._update(entry)
                job = self._jobs.get(number)
                if job is not None and job.state is not JobState.INACTIVE:
                    del self._jobs[number]
                    self._changed.discard(number)
            done.set_result(None)

        self._loop.wait_for(take, SYNC_DEADLINE_S, "taking in jobs that ended")

    def active_jobs(self) -> list[ActiveJob]:
        """Return all active jobs. Raises Unreadable, LeadGone."""

        def ask(found: Future[list[ActiveJob]]) -> None:
            if self._table is None or not self._synced:
                found.set_exception(_not_followed())
            else:
                found.set_result(self._table.jobs())

        return self._loop.wait_for(
            ask, self._picture_deadline_s, "reading all active jobs"
        )

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return one active job; None if there is none. Raises Unreadable, LeadGone."""

        def read() -> ActiveJob | None:
            return self._table.job(number) if self._table is not None else None

        if self._table is None:
            raise _not_followed()
        return self._read_after_ping(read)

    def job_views(self) -> dict[JobId, JobView]:
        """Return all burstable jobs as they are now.

        They show all that the job manager had done when this was called: it is pinged
        on the journal's connection, and its answer arrives after all events that it
        sent before. So a job that was held or released before is shown as such.
        Raises Unreadable while the journal is being read again, LeadGone.
        """
        return self._read_after_ping(self._show)

    def observed(self) -> None:
        """Note that what `job_views` returned last was used. From any thread."""
        now = self._clock()
        self._loop.post(lambda: self._ended.note_seen(now))

    def changed(self) -> frozenset[JobId]:
        """Return the jobs that have changed since `job_views` last showed them.

        All that the job manager had done when this was called counts. Raises
        Unreadable while the journal is being read again, LeadGone.
        """
        return self._read_after_ping(lambda: frozenset(self._changed))

    def _show(self) -> dict[JobId, JobView]:
        self._forget()
        for job in self._changed:
            self._views[job] = self._jobs[job].view()
        self._changed.clear()
        self._ended.show()
        return dict(self._views)

    def _read_after_ping(self, read_jobs: Callable[[], _T]) -> _T:
        """Call `read_jobs` once all events that were sent so far are taken in."""

        def ask(result: Future[_T]) -> None:
            self._ping(result, read_jobs)

        return self._loop.wait_for(
            ask, self._picture_deadline_s, "asking the job manager"
        )

    def _ping(self, result: Future[_T], read_jobs: Callable[[], _T]) -> None:
        def answer(said: dict[str, Any] | BurstError) -> None:
            if isinstance(said, BurstError):
                result.set_exception(said)
            elif not self._synced:
                result.set_exception(
                    Unreadable("the jobs of the lead are being read again")
                )
            else:
                result.set_result(read_jobs())

        self._loop.ask(_PING, {}, answer)

    def wake_in(self, delay_s: float) -> None:
        """Wake the daemon after `delay_s` seconds. From any thread."""
        self._loop.post(lambda: self._loop.after(delay_s, self._wake))

    def _take(self, payload: bytes) -> None:
        self.events += 1
        try:
            self._read(payload)
        except RecursionError:
            # Flux takes memos that nest too deeply to be read here.
            self._spoil(payload)

    def _spoil(self, payload: bytes) -> None:
        match = _ID.match(payload)
        job = self._jobs.get(int(match[1])) if match else None
        if job is not None:
            job.mark_unreadable("what its user wrote nests too deeply")
            self._changed.add(job.id)
            self._tell(job)

    def _read(self, payload: bytes) -> None:
        if self._table is not None:
            self._read_all(payload, self._table)
            return
        if _MARK not in payload:
            number = _HEAD.decode(payload).id
            if number == _SENTINEL:
                self._sync()
            if number not in self._jobs and number not in self._known:
                return
        self._update(_ENTRY.decode(payload))

    def _read_all(self, payload: bytes, table: QueueTable) -> None:
        """Take in a response while all active jobs are followed."""
        entry = _ENTRY.decode(payload)
        if entry.id == _SENTINEL:
            self._sync()
            return
        table.take(entry.id, entry.events, entry.jobspec, entry.R)
        if self._record is not None:
            for event in entry.events:
                self._record(_recorded(entry, event))
        shown = entry.id in self._jobs or entry.id in self._known
        if shown or _MARK in payload or self._may_burst is not None:
            self._update(entry)

    def _update(self, entry: _Entry) -> None:
        """Take in the events of a job that is shown, or that may have to be."""
        job = self._jobs.get(entry.id) or self._admit(entry)
        if job is None:
            return
        if not any(map(changes_job, entry.events)):
            return
        for event in entry.events:
            job.apply(event, entry.R)
        self._changed.add(job.id)
        if job.state is JobState.INACTIVE:
            self._ended.add(job.id)
            self._forget()
        if self._synced:
            self._tell(job)

    def _tell(self, job: JournalJob) -> None:
        """Wake the daemon for a change of a job: at once if a tick may act on it.

        A job has four events before the scheduler has it. A tick for the first of them
        would only delay the tick for the last.
        """
        if job.state not in _NOT_READY:
            self._wake()
        elif not self._waking:
            self._waking = True
            self._loop.after(SOON_S, self._wake_late)

    def _wake_late(self) -> None:
        self._waking = False
        self._wake()

    def _admit(self, entry: _Entry) -> JournalJob | None:
        if not entry.jobspec:
            return None
        number, jobspec = JobId(entry.id), bytes(entry.jobspec)

        def is_wanted(spec: Mapping[str, Any]) -> bool:
            may_burst = self._may_burst
            if number in self._known or may_burst is None:
                return number in self._known
            return may_burst(int(entry.events[0].context["userid"]), spec)

        job = job_from_jobspec(number, jobspec, is_wanted)
        if job is not None:
            self._jobs[entry.id] = job
        return job

    def _sync(self) -> None:
        self._synced = True
        self.missing = self._known - self._jobs.keys()
        if not self._first.done():
            self._first.set_result(None)
        self._wake()

    def _broken(self, error: BurstError) -> bool:
        self._read_again()
        if isinstance(error, Denied) and not self._first.done():
            self._first.set_exception(error)
            return False
        self._wake()
        return True

    def _read_again(self) -> None:
        """Forget the active jobs, which the backlog brings again; keep ended ones."""
        # A job may be on record that no longer is burstable: its attribute or the rule
        # that marked it is gone. It has to be shown to be released.
        self._known = frozenset(self._read_known())
        self._jobs = {job: self._jobs[job] for job in self._ended}
        self._views.clear()
        self._changed = {job.id for job in self._jobs.values()}
        self._synced = False
        if self._table is not None:
            self._table.clear()

    def _forget(self) -> None:
        for number in self._ended.pop_old(self._clock()):
            job = self._jobs.pop(number).id
            self._changed.discard(job)
            self._views.pop(job, None)


def _not_followed() -> Unreadable:
    why = "all jobs of the lead are not known"
    return Unreadable(why, "follow_queue makes them known")
