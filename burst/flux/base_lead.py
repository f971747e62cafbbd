# SPDX-License-Identifier: MIT
"""The part of a lead that sends requests to the job manager, over any connection.

`burst.flux.lead.FluxLead` is the lead on Flux. A package whose broker answers the same
requests (RFC 21 and 43, and the job manager's journal) derives its lead from this, too.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import msgspec

from burst.decode import from_json
from burst.errors import MALFORMED, BurstError, Unreadable
from burst.flux.broker_state import BrokerState
from burst.flux.confine import confine_jobs
from burst.flux.connection import Connection
from burst.flux.job_requests import find_jobs, job_outcomes, read_ended, submit_jobs
from burst.flux.journal import Journal
from burst.flux.loop import Loop
from burst.flux.ranks import ResourceWatcher
from burst.flux.rpc import Query, RpcClient
from burst.flux.service import FluxService, call_service
from burst.lead import (
    ANSWER_S,
    JobFailures,
    KnownJobs,
    MayBurst,
    NewJob,
    QueueListener,
    RequestGate,
    RequestHandler,
    admit_all,
    no_known_jobs,
)
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture, picture_of
from burst.model.event import Event
from burst.model.job_record import RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.ranks import format_idset
from burst.model.request import unreadable

_HELD = 0
_FATAL = 0
# Flags of job-info.lookup (flux_job_kvs_lookup(3), libjob/job.h).
_DECODED = 1
_CURRENT = 2


def _submitted(signed: str) -> Any:
    """Return the payload of a signed jobspec: HEADER.PAYLOAD.SIGNATURE, in base64.

    Flux keeps the environment in no other place. Flux has checked the signature
    (RFC 15), but not that the environment is an object. Raises what MALFORMED lists.
    """
    return msgspec.json.decode(base64.b64decode(signed.split(".")[1]))


def _do_nothing() -> None:
    """Do nothing: `listen` was not called yet."""


class BaseLead(ABC):
    """An instance of Flux, or of a broker that answers the same requests.

    The methods use one connection. The journals, and each service, have a thread and a
    connection of their own, made by `listen` and `serve`.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        """Raises what `connect` raises."""
        self._connect = connect
        self._handle = connect()
        self._client = RpcClient(self._handle)
        self._journal: Journal | None = None
        self._queue: tuple[
            QueueListener | None, MayBurst | None, RecordEvent | None
        ] = None, None, None
        self._state: BrokerState | None = None
        self._services: list[FluxService] = []
        self._loops: list[Loop] = []
        self._wake: Callable[[], None] = _do_nothing

    @abstractmethod
    def read_ranks(self, journal: Journal, jobs: Mapping[JobId, JobView]) -> LeadView:
        """Return the view of the lead without its jobs. Raises Unreadable.

        `jobs` are those of the view, which were read just before.
        """

    @abstractmethod
    def forget_ranks(self, ranks: frozenset[int]) -> None:
        """Note that these ranks are about to be drained or undrained."""

    def listen(
        self, wake: Callable[[], None], known: KnownJobs = no_known_jobs
    ) -> None:
        """See `burst.lead.Lead`."""
        self._wake = wake
        loop = self._loop("burst-journal")
        journal = Journal(loop, wake)
        journal.follow_queue(*self._queue)
        journal.start(known)
        ResourceWatcher(loop, wake).start()
        self._state = BrokerState(loop)
        self._state.start()
        self._journal = journal

    def observe(self) -> LeadView:
        """See `burst.lead.Lead`.

        Jobs are read before ranks, so that the ranks of a job that has just started are
        in `allocated`, even if its JobView does not show them yet. `changed` is read
        last; it names the jobs whose JobView may be too old in this way.
        """
        journal = self._followed()
        for loop in self._loops:
            loop.check()
        jobs = self._read_jobs(journal)
        view = self.read_ranks(journal, jobs)
        changed = journal.changed()
        journal.observed()
        return msgspec.structs.replace(
            view, jobs=jobs, changed=changed, shuts_down=self.shuts_down()
        )

    def _read_jobs(self, journal: Journal) -> dict[JobId, JobView]:
        jobs = journal.job_views()
        if not (missing := journal.missing):
            return jobs
        journal.take_ended(missing, read_ended(self._client, missing))
        return journal.job_views()

    def _followed(self) -> Journal:
        """Return the journal. Raises Unreadable before `listen`."""
        if self._journal is None:
            raise Unreadable(
                "the jobs of the lead are not read yet", "call listen first"
            )
        return self._journal

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        """See `burst.lead.WholeQueue`."""
        self._queue = listener, may_burst, record
        if self._journal is not None:
            self._journal.restart(*self._queue)

    def queue_picture(self) -> QueuePicture:
        """See `burst.lead.WholeQueue`."""
        return picture_of(self._followed().active_jobs())

    def active_job(self, number: JobId) -> ActiveJob | None:
        """See `burst.lead.WholeQueue`."""
        return self._followed().active_job(number)

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """See `burst.lead.JobSubmitter`."""
        with closing(self._connect()) as handle:
            return submit_jobs(handle, jobs)

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """See `burst.lead.JobSubmitter`."""
        with closing(self._connect()) as handle:
            return find_jobs(RpcClient(handle), names)

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """See `burst.lead.JobSubmitter`."""
        with closing(self._connect()) as handle:
            return job_outcomes(RpcClient(handle), jobs)

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return self._set_urgencies(dict.fromkeys(jobs, _HELD))

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return self._set_urgencies(urgencies)

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return confine_jobs(self._client, lent)

    def write_memos(self, memos: Mapping[JobId, Mapping[str, Any]]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return self._order(
            memos,
            (
                ("job-manager.memo", {"id": job, "memo": {"burst": memo}})
                for job, memo in memos.items()
            ),
        )

    def fail_job(self, job: JobId, reason: str) -> None:
        """See `burst.lead.Lead`."""
        self._raise(job, "burst", reason)

    def cancel_job(self, job: JobId, reason: str) -> None:
        """See `burst.lead.Lead`."""
        self._raise(job, "cancel", reason)

    def _raise(self, job: JobId, kind: str, note: str) -> None:
        """Raise a fatal exception of type `kind` on a job."""
        exception = {"id": job, "severity": _FATAL, "type": kind, "note": note}
        self._client.ask("job-manager.raise", exception)

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """See `burst.lead.Lead`. With all updates, as `flux job info` shows it."""
        keys = ["jobspec", "J"]
        request = {"id": job, "keys": keys, "flags": _DECODED | _CURRENT}
        try:
            found = self._client.ask("job-info.lookup", request)
            spec: dict[str, Any] = found["jobspec"]
            system = _submitted(found["J"])["attributes"]["system"]
            environment = system.get("environment")
            spec["attributes"]["system"]["environment"] = environment
        except MALFORMED as error:
            raise unreadable("jobspec", error) from error
        return spec

    def submitted_jobspec(self, job: JobId) -> Mapping[str, Any]:
        """See `burst.lead.Lead`."""
        found = self._client.ask(
            "job-info.lookup", {"id": job, "keys": ["J"], "flags": 0}
        )
        try:
            spec: dict[str, Any] = _submitted(found["J"])
        except MALFORMED as error:
            raise unreadable("jobspec", error) from error
        return spec

    def events(self, job: JobId) -> Sequence[Event]:
        """See `burst.lead.Lead`."""
        request = {"id": job, "keys": ["eventlog"], "flags": 0}
        lines = self._client.ask("job-info.lookup", request)["eventlog"].splitlines()
        return [from_json(line, Event) for line in lines]

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """See `burst.lead.Lead`."""
        self._set_drained("resource.drain", ranks, reason=reason)

    def undrain(self, ranks: frozenset[int]) -> None:
        """See `burst.lead.Lead`."""
        self._set_drained("resource.undrain", ranks)

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,
    ) -> None:
        """See `burst.lead.Lead`."""
        service = FluxService(self._loop("burst-service"), handler, holder, admit)
        service.register(self._client)
        self._services.append(service)

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = ANSWER_S
    ) -> dict[str, Any]:
        """See `burst.lead.Lead`."""
        return call_service(self._client, method, payload, timeout)

    def shuts_down(self) -> bool:
        """See `burst.lead.OrderlyEnd`."""
        return self._state is not None and self._state.ends

    def close(self) -> None:
        """See `burst.lead.Lead`. May be called twice."""
        for service in self._services:
            service.close()
        while self._loops:
            self._loops.pop().close()
        self._handle.close()

    def _set_drained(self, topic: str, ranks: frozenset[int], **reason: str) -> None:
        if ranks:
            self.forget_ranks(ranks)
            # Mode update leaves ranks that are in the wanted state as they are.
            request = {"targets": format_idset(ranks), "mode": "update", **reason}
            self._client.ask(topic, request)

    def _loop(self, name: str) -> Loop:
        loop = Loop(self._connect(), name)
        loop.on_lost = self._tell_loss
        self._loops.append(loop)
        return loop

    def _tell_loss(self) -> None:
        """Wake the daemon; `observe` then raises LeadGone."""
        self._wake()

    def _set_urgencies(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        return self._order(
            urgencies,
            (
                ("job-manager.urgency", {"id": job, "urgency": urgency})
                for job, urgency in urgencies.items()
            ),
        )

    def _order(self, jobs: Iterable[JobId], queries: Iterable[Query]) -> JobFailures:
        answers = self._client.ask_all(queries)
        return {
            job: str(answer)
            for job, answer in zip(jobs, answers, strict=True)
            if isinstance(answer, BurstError)
        }
