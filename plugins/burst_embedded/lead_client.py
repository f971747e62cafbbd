# SPDX-License-Identifier: MIT
"""`burst.lead.Lead`, `WholeQueue` and `JobSubmitter` for the embedded lead.

Everyone who can connect is its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import msgspec

from burst.errors import BurstError, LeadError, StoreError, Unreadable
from burst.lead import (
    JobFailures,
    MayBurst,
    NewJob,
    QueueListener,
    RequestGate,
    RequestHandler,
    ServiceRequest,
    Store,
    admit_all,
)
from burst.log import failure
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture, picture_of
from burst.model.confinement import split_confinement
from burst.model.event import Event
from burst.model.job_record import RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView
from burst.model.request import parse_name
from burst.request_threads import RequestThreads, read_payload
from burst_embedded.connection import TIMEOUT_S, Answers, Connection, LeadSilent
from burst_embedded.job import Job
from burst_embedded.watcher import InstanceWatcher, Interest
from burst_embedded.wire import Fault, Response, ServiceCall, fault_of

_WRITE_S = 30.0
"""Seconds that a slow disk may take to keep what is written."""


def _do_nothing() -> None:
    """Do nothing: `listen` was not called yet."""


def connect(uri: str, *, attribute: str = "burstable") -> EmbeddedLead:
    """Return the lead at `embedded://PATH`; attribute is what marks a burstable job.

    Raises LeadGone if there is none, ConfigError if that is no such URI.
    """
    return EmbeddedLead(uri, attribute)


class EmbeddedLead:
    """One client, by one connection."""

    def __init__(self, uri: str, attribute: str) -> None:
        self._connection = Connection(uri)
        self._call = self._connection.call
        self._watched: InstanceWatcher | None = None
        self._interest = Interest(attribute)
        self._wake: Callable[[], None] = _do_nothing
        self._service: _Service | None = None
        try:
            self._identity: LeadIdentity = self._call(LeadIdentity, "identity")
        except BaseException:
            self._connection.close()
            raise

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs."""
        return self._identity

    def listen(self, wake: Callable[[], None], known: Collection[JobId] = ()) -> None:
        """Begin to follow jobs and ranks."""
        self._wake = wake
        self._interest = msgspec.structs.replace(self._interest, known=frozenset(known))
        self._watch()

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        """Follow all jobs, or none but those that `listen` is for."""
        self._interest = msgspec.structs.replace(
            self._interest, listener=listener, may_burst=may_burst, record=record
        )
        if self._watched is not None:
            self._watch()

    def queue_picture(self) -> QueuePicture:
        """Return all active jobs."""
        return picture_of(self._followed().active_jobs().values())

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return one active job, also one that was just submitted."""
        watched = self._followed()
        watched.view(self._call(int, "sync"))
        return watched.active_jobs().get(number)

    def observe(self) -> LeadView:
        """Return jobs and ranks as of one moment, earlier calls included."""
        return self._followed().view(self._call(int, "sync"))

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """Submit these jobs."""
        return [self._submit(job) for job in jobs]

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """Return the jobs that have these names."""
        named = ((parse_name(job.jobspec), job.id) for job in self._jobs())
        return {name: job_id for name, job_id in named if name in names}

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """Return how these jobs ended."""
        return {
            job.id: JobOutcome(job.result, job.t_start, job.t_finish)
            for job in self._jobs()
            if job.id in jobs and job.is_over
        }

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """Set the urgency of each job to 0."""
        return self.release(dict.fromkeys(jobs, 0))

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """Set the urgency of each job."""
        return self._order("set_urgency", urgencies)

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """Let each job run on own nodes and on these lent ranks only."""
        return self._order("confine", lent)

    def write_memos(self, memos: Mapping[JobId, Mapping[str, Any]]) -> JobFailures:
        """Merge each mapping into the job's memo under `burst`."""
        noted = {job: {"burst": memo} for job, memo in memos.items()}
        return self._order("merge_memo", noted)

    def fail_job(self, job: JobId, reason: str) -> None:
        """Raise a fatal exception of type `burst`."""
        self._call(None, "raise_exception", job, "burst", reason)

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """Give a held job the result of a run elsewhere."""
        return bool(self._call(bool, "finish", job, exit_status, output))

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return a job's jobspec."""
        found: Job = self._call(Job, "find", job)
        return found.jobspec

    def submitted_jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return a job's jobspec, without what confines it."""
        spec = self.jobspec(job)
        system = spec["attributes"]["system"]
        own, _ = split_confinement(system.get("constraints"))
        system = {**system, "constraints": own}
        return {**spec, "attributes": {**spec["attributes"], "system": system}}

    def events(self, job: JobId) -> Sequence[Event]:
        """Return all that happened to a job."""
        found: Job = self._call(Job, "find", job)
        return found.events

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """Have no new job start on these ranks."""
        self._call(None, "drain", ranks, reason)

    def undrain(self, ranks: frozenset[int]) -> None:
        """Let jobs start on these ranks again."""
        self._call(None, "undrain", ranks)

    def store(self) -> Store:
        """Return the store, which the lead keeps in a file."""
        return _LeadStore(self._call)

    def shared_store(self) -> Store:
        """Return the store: the connection serves all threads."""
        return self.store()

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,  # noqa: ARG002 - all callers are its owner
    ) -> None:
        """Register the service `burst`."""
        self._service = _Service(self._connection, handler, holder)

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = 10.0
    ) -> dict[str, Any]:
        """Ask the daemon that serves this lead."""
        asked = "request", method, _as_json(payload)
        try:
            return dict(self._call(dict[str, Any], *asked, timeout=timeout))
        except LeadSilent as error:
            raise LeadError(
                f"the daemon did not answer {method!r} within {timeout:g} s",
                "its log may say why",
            ) from error

    def shuts_down(self) -> bool:
        """Return whether the lead has said that it stops; see `OrderlyEnd`."""
        return self._connection.leaves

    def close(self) -> None:
        """End the connection, and the service."""
        self._connection.close()
        if self._service:
            self._service.close()

    def _watch(self) -> None:
        self._watched = InstanceWatcher(self._connection, self._interest, self._wake)

    def _followed(self) -> InstanceWatcher:
        """Return what watches the instance. Raises Unreadable before `listen`."""
        if self._watched is None:
            raise Unreadable(
                "the jobs of the lead are not read yet", "call listen first"
            )
        return self._watched

    def _jobs(self) -> list[Job]:
        jobs: list[Job] = self._call(list[Job], "jobs")
        return jobs

    def _submit(self, job: NewJob) -> JobId | BurstError:
        try:
            return JobId(self._call(int, "submit", job.jobspec, job.urgency))
        except Unreadable:
            raise
        except BurstError as error:
            return error

    def _order(self, method: str, orders: Mapping[JobId, Any]) -> JobFailures:
        """Carry out an order for each job; return the errors of those that fail."""
        failures = {}
        for job_id, value in orders.items():
            try:
                self._call(None, method, job_id, value)
            except Unreadable:
                raise
            except LeadError as error:
                failures[job_id] = str(error)
        return failures


class _LeadStore:
    """The store, by calls of the lead."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def load(self) -> dict[str, str]:
        """Return all records."""
        return dict(self._ask(dict[str, str], "load"))

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all these values, or none."""
        try:
            self._ask(None, "write", changes, timeout=_WRITE_S)
        except UnicodeEncodeError as error:
            raise StoreError(f"a value is not text: {error.reason}") from error


class _Service:
    """The service `burst`: each request is answered on one of a few threads.

    Opening raises ServiceTaken, LeadGone.
    """

    def __init__(
        self, connection: Connection, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._workers = RequestThreads("embedded-service")
        self._is_open = False
        opened: Answers = SimpleQueue()

        def hear(said: Response | None) -> None:
            if not self._is_open:
                self._is_open = True
                opened.put(said)
            elif said:
                self._hear(said.read(ServiceCall))

        who = (holder["pid"], holder["host"], holder["since"])
        connection.open(hear, "serve", *who)
        try:
            connection.next(opened, TIMEOUT_S).read(None)
        except BaseException:
            self._workers.close()
            raise

    def close(self) -> None:
        """Stop serving. Requests under way get no answer."""
        self._workers.close()

    def _hear(self, asked: ServiceCall) -> None:
        try:
            read_payload(msgspec.json.encode(asked.payload))
            # All who reach an embedded lead are its owner.
            self._workers.submit(
                asked.method,
                asked.userid,
                owner=True,
                work=lambda: self._serve(asked),
            )
        except BurstError as error:
            self._connection.tell("answer", asked.number, None, fault_of(error))

    def _serve(self, asked: ServiceCall) -> None:
        request = ServiceRequest(asked.method, asked.payload, asked.userid, owner=True)
        payload, fault = None, None
        try:
            payload = _as_json(self._handler(request))
        except BurstError as error:
            fault = fault_of(error)
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            failure("answering burst.%s", asked.method)
            what = f"internal error: {error!r}"
            fault = Fault("burst", what, "the daemon's log has more")
        self._connection.tell("answer", asked.number, payload, fault)


def _as_json(value: Any) -> Any:
    """Return the value as it would arrive over Flux, which sends JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
