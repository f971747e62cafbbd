# SPDX-License-Identifier: MIT
"""`burst.lead.Lead`, `WholeQueue` and `JobSubmitter` for the embedded lead.

Everyone who can connect is its owner.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from burst.errors import BurstError, LeadGone, Unreadable
from burst.lead import (
    JobFailures,
    MayBurst,
    NewJob,
    QueueListener,
    RequestGate,
    RequestHandler,
    Store,
    admit_all,
)
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture, picture_of
from burst.model.event import Event
from burst.model.job_record import RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadIdentity, LeadView
from burst_embedded import calls
from burst_embedded.client import TIMEOUT_S, EmbeddedClient
from burst_embedded.file_store import FileStore
from burst_embedded.queue_mirror import QueueMirror
from burst_embedded.streams import EmbeddedService, InstanceWatcher, as_json

STORE = "burst.sqlite"
"""Name of the store's file in the lead's statedir, or else in its rundir."""
_T = TypeVar("_T")
_NOTHING = type(None)


def _do_nothing() -> None:
    """Do nothing: `listen` was not called yet."""


def connect(uri: str, *, attribute: str = "burstable") -> EmbeddedLead:
    """Return the lead at `embedded://PATH`; attribute is what marks a burstable job.

    Raises LeadGone if there is none, ConfigError if that is no such URI.
    """
    return EmbeddedLead(uri, attribute)


class EmbeddedLead:
    """One client. Connections are opened for calls, for listening, and for serving."""

    def __init__(self, uri: str, attribute: str) -> None:
        self._uri = uri
        self._attribute = attribute
        self._lock = threading.Lock()
        self._client = EmbeddedClient(uri)
        self._watched: InstanceWatcher | None = None
        self._known: frozenset[JobId] = frozenset()
        self._queue: tuple[
            QueueListener | None, MayBurst | None, RecordEvent | None
        ] = None, None, None
        self._wake: Callable[[], None] = _do_nothing
        self._service: EmbeddedService | None = None
        self._lost = False
        self._identity = self._ask(calls.Identify(), LeadIdentity)

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs."""
        return self._identity

    def listen(self, wake: Callable[[], None], known: Collection[JobId] = ()) -> None:
        """Begin to follow jobs and ranks."""
        self._wake, self._known = wake, frozenset(known)
        self._watch()

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        """Follow all jobs, or none but those that `listen` is for."""
        self._queue = listener, may_burst, record
        if self._watched is not None:
            self._watched.close()
            self._watch()

    def _followed(self) -> InstanceWatcher:
        """Return what watches the instance. Raises Unreadable before `listen`."""
        if self._watched is None:
            raise Unreadable(
                "the jobs of the lead are not read yet", "call listen first"
            )
        return self._watched

    def queue_picture(self) -> QueuePicture:
        """Return all active jobs."""
        return picture_of(self._followed().active_jobs())

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return one active job, also one that was just submitted."""
        watched = self._followed()
        with closing(EmbeddedClient(self._uri)) as client:
            watched.view(client.call(calls.Sync(), int))
        return next((job for job in watched.active_jobs() if job.id == number), None)

    def observe(self) -> LeadView:
        """Return jobs and ranks as of one moment, earlier calls included."""
        return self._followed().view(self._ask(calls.Sync(), int))

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """Submit these jobs."""
        with closing(EmbeddedClient(self._uri)) as client:
            return [_submit(client, job) for job in jobs]

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """Return the jobs that have these names."""
        with closing(EmbeddedClient(self._uri)) as client:
            return client.call(calls.FindJobs(tuple(names)), dict[str, JobId])

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """Return how these jobs ended."""
        with closing(EmbeddedClient(self._uri)) as client:
            known = client.call(calls.ListJobs(), list[calls.JobInfo])
        return {
            job.id: JobOutcome(job.result, job.t_start, job.t_finish)
            for job in known
            if job.id in jobs and job.state is JobState.INACTIVE
        }

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """Set the urgency of each job to 0."""
        return self.release(dict.fromkeys(jobs, 0))

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """Set the urgency of each job."""
        return self._ask(calls.SetUrgencies(urgencies), dict[JobId, str])

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """Let each job run on own nodes and on these lent ranks only."""
        return self._ask(calls.SetConfinement(lent), dict[JobId, str])

    def write_memos(self, memos: Mapping[JobId, Mapping[str, Any]]) -> JobFailures:
        """Merge each mapping into the job's memo under `burst`."""
        noted = {job: {"burst": memo} for job, memo in memos.items()}
        return self._ask(calls.MergeMemos(noted), dict[JobId, str])

    def fail_job(self, job: JobId, reason: str) -> None:
        """Raise a fatal exception of type `burst`."""
        self._ask(calls.RaiseException(job, "burst", reason), _NOTHING)

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """Give a held job the result of a run elsewhere."""
        return self._ask(calls.FinishJob(job, exit_status, output), bool)

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return a job's jobspec."""
        return self._ask(calls.Lookup(job), dict[str, Any])

    def events(self, job: JobId) -> Sequence[Event]:
        """Return all that happened to a job."""
        (found,) = self._ask(calls.ListJobs((job,)), list[calls.JobInfo])
        return found.events

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """Have no new job start on these ranks."""
        self._ask(calls.DrainCall(ranks, reason), _NOTHING)

    def undrain(self, ranks: frozenset[int]) -> None:
        """Let jobs start on these ranks again."""
        self._ask(calls.UndrainCall(ranks), _NOTHING)

    def store(self) -> Store:
        """Return the file beside the lead's other state."""
        rundir = Path(self._uri.removeprefix("embedded://")).parent
        directory = Path(self._identity.statedir or rundir)
        return _StoreOfLead(FileStore(directory / STORE), self._check)

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,  # noqa: ARG002 - all callers are its owner
    ) -> None:
        """Register the service `burst`."""
        self._service = EmbeddedService(self._uri, handler, holder)

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = 10.0
    ) -> dict[str, Any]:
        """Ask the daemon that serves this lead."""
        return self._ask(
            calls.RequestService(method, as_json(payload)), dict[str, Any], timeout
        )

    def shuts_down(self) -> bool:
        """Return whether the lead has said that it stops; see `OrderlyEnd`."""
        return self._lost and self._watched is not None and self._watched.shuts_down()

    def close(self) -> None:
        """End all connections, and the service."""
        for part in (self._service, self._watched, self._client):
            if part:
                part.close()

    def _watch(self) -> None:
        mirror = QueueMirror(*self._queue)
        wanted = calls.WatchInstance(self._attribute, self._known, mirror.followed)
        self._watched = InstanceWatcher(self._uri, wanted, self._wake, mirror=mirror)

    def _ask(self, body: calls.Body, kind: type[_T], timeout: float = TIMEOUT_S) -> _T:
        try:
            with self._lock:
                return self._client.call(body, kind, timeout)
        except LeadGone:
            self._lost = True
            raise

    def _check(self) -> None:
        """Raise LeadGone unless the lead is there."""
        self._ask(calls.Sync(), int)


def _submit(client: EmbeddedClient, job: NewJob) -> JobId | BurstError:
    try:
        return client.call(calls.Submit(job.jobspec, job.urgency), JobId)
    except (LeadGone, Unreadable):
        raise
    except BurstError as error:
        return error


class _StoreOfLead:
    """A store that raises LeadGone once its lead is gone, as one in the lead would.

    A daemon that lost the lead may have been replaced by another, and must not write.
    """

    def __init__(self, store: Store, check: Callable[[], None]) -> None:
        self._store = store
        self._check = check

    def load(self) -> dict[str, str]:
        """Return all records."""
        self._check()
        return self._store.load()

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all these values, or none."""
        self._check()
        self._store.write(changes)
