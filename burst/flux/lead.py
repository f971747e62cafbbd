# SPDX-License-Identifier: MIT
"""`burst.lead.Lead` and all of its optional interfaces for Flux."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import msgspec

from burst.config import IntakeSettings
from burst.decode import from_json
from burst.errors import MALFORMED, BurstError, LeadError, Unreadable
from burst.flux.accounting import read_associations
from burst.flux.bindings import check_version
from burst.flux.broker_state import BrokerState
from burst.flux.confine import confine_jobs
from burst.flux.ended_jobs import read_ended
from burst.flux.finish_job import finish_job
from burst.flux.frobnicator import check_users_apart
from burst.flux.handle import Handle, library_version
from burst.flux.housekeeping import Housekeeping, end_housekeeping
from burst.flux.identity import parse_access, parse_queues, read_identity
from burst.flux.intake import QUEUE, prepare_queues, send_leases, send_starts
from burst.flux.journal import Journal
from burst.flux.loop import Loop
from burst.flux.queue_changes import enqueue_jobs
from burst.flux.queues import read_queues
from burst.flux.ranks import ResourceWatcher, read_ranks
from burst.flux.rpc import Query, RpcClient, read_attribute
from burst.flux.scheduler import SchedulerReader, check_scheduler
from burst.flux.scheduler_status import SchedulerStatus
from burst.flux.service import FluxService, call_service
from burst.flux.store import FluxStore, SharedStore
from burst.flux.submit import find_jobs, job_outcomes, submit_jobs
from burst.lead import (
    JobFailures,
    MayBurst,
    NewJob,
    QueueListener,
    RequestGate,
    RequestHandler,
    admit_all,
)
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture, picture_of
from burst.model.banks import Associations
from burst.model.event import Event
from burst.model.job_limits import parse_limits
from burst.model.job_record import RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import (
    GuestAccess,
    LeadIdentity,
    LeadView,
    LeasedRanks,
)
from burst.model.ranks import format_idset
from burst.model.request import unreadable

_HELD = 0
_FATAL = 0
# Flags of job-info.lookup (flux_job_kvs_lookup(3), libjob/job.h).
_DECODED = 1
_CURRENT = 2


def connect(uri: str, *, attribute: str = "burstable") -> FluxLead:
    """Return a lead at this URI; empty means FLUX_URI or Flux's default.

    Only the connection is made; a guest, or a client on another rank, can go on to
    `call`. `attribute` under `attributes.system` marks jobs that may burst. Raises
    LeadGone if there is no broker, LeadError if Flux's bindings cannot be found or are
    of another version than the broker.
    """
    handle = Handle(uri)
    try:
        version = read_attribute(RpcClient(handle), "version")
        check_version(version, library_version())
    except BurstError:
        handle.close()
        raise
    return FluxLead(uri, handle, attribute)


def _submitted(signed: str) -> Any:
    """Return a jobspec that was signed: HEADER.PAYLOAD.SIGNATURE, in base64.

    Flux keeps the environment in no other place. It has checked the signature itself
    (RFC 15), but not that the environment is an object. Raises what MALFORMED lists.
    """
    return msgspec.json.decode(base64.b64decode(signed.split(".")[1]))


def _do_nothing() -> None:
    """Do nothing: `listen` was not called yet."""


class FluxLead:
    """An instance, over up to three connections.

    One is used by the methods. The journals and the service have a thread and a
    connection each, made by `listen` and `serve`.
    """

    def __init__(self, uri: str, handle: Handle, attribute: str) -> None:
        self._uri = uri
        self._attribute = attribute
        self._handle = handle
        self._client = RpcClient(handle)
        self._scheduler = SchedulerReader(self._client)
        self._scheduler_status = SchedulerStatus()
        self._events_seen = 0
        self._store = FluxStore(self._client)
        self._housekeeping = Housekeeping()
        self._has_enqueued = False
        """Named queues come with a restart of the instance, which ends this."""
        self._identity: LeadIdentity | None = None
        self._journal: Journal | None = None
        self._queue: tuple[
            QueueListener | None, MayBurst | None, RecordEvent | None
        ] = None, None, None
        self._state: BrokerState | None = None
        self._service: FluxService | None = None
        self._loops: list[Loop] = []
        self._wake: Callable[[], None] = _do_nothing

    def identity(self) -> LeadIdentity:
        """See `burst.lead.Lead`."""
        if self._identity is None:
            self._identity = read_identity(self._client, self._store)
        return self._identity

    def listen(self, wake: Callable[[], None], known: Collection[JobId] = ()) -> None:
        """See `burst.lead.Lead`. Raises LeadError away from rank 0."""
        self._check_rank()
        self._wake = wake
        loop = self._loop("burst-journal")
        journal = Journal(loop, self._attribute, wake)
        journal.follow_queue(*self._queue)
        journal.start(known)
        if ended := sorted(set(known) - journal.job_views().keys()):
            journal.take_ended(read_ended(self._client, ended))
        ResourceWatcher(loop, wake).start()
        self._state = BrokerState(loop)
        self._state.start()
        self._journal = journal

    def observe(self) -> LeadView:
        """See `burst.lead.Lead`.

        Jobs are read before ranks, so that the ranks of a job that has just started are
        in `allocated`, even where its JobView does not show them yet. `changed` is read
        last; it names the jobs that this may concern.
        """
        journal = self._followed()
        for loop in self._loops:
            loop.check()
        jobs = journal.job_views()
        queues = read_queues(self._client)
        events = journal.events
        moved, self._events_seen = events != self._events_seen, events
        ranks = read_ranks(self._client, self._scheduler_status, moved=moved)
        kept = self._housekeeping.read(self._client, ranks, self.identity(), jobs)
        if self._housekeeping.has_just_ended:
            ranks = read_ranks(self._client, self._scheduler_status, moved=True)
            kept = self._housekeeping.read(self._client, ranks, self.identity(), jobs)
        due_in = self._scheduler_status.due_in
        if due_in is not None:
            journal.wake_in(due_in)
        return msgspec.structs.replace(
            ranks,
            jobs=jobs,
            queues=queues,
            housekeeping=kept.housekeeping,
            epilogs=kept.epilogs,
            scheduler=self._scheduler.read(),
            changed=journal.changed(),
            shuts_down=self.shuts_down(),
        )

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

    def associations(self, timeout: float) -> Associations | None:
        """See `burst.lead.Accounting`. Over a connection of its own."""
        with closing(Handle(self._uri)) as handle:
            return read_associations(RpcClient(handle), timeout)

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """See `burst.lead.JobSubmitter`."""
        with closing(Handle(self._uri)) as handle:
            return submit_jobs(handle, jobs)

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """See `burst.lead.JobSubmitter`."""
        with closing(Handle(self._uri)) as handle:
            return find_jobs(RpcClient(handle), names)

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """See `burst.lead.JobSubmitter`."""
        with closing(Handle(self._uri)) as handle:
            return job_outcomes(RpcClient(handle), jobs)

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return self._set_urgencies(dict.fromkeys(jobs, _HELD))

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return self._set_urgencies(urgencies)

    def prepare_queues(self, intake: IntakeSettings) -> None:
        """See `burst.lead.Queues`."""
        prepare_queues(self._client, intake)
        if not self._has_enqueued:
            enqueue_jobs(self._client)
            self._has_enqueued = True

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """See `burst.lead.Lead`."""
        return confine_jobs(self._client, lent)

    def move(
        self,
        queues: Mapping[JobId, str],
        lent: Mapping[JobId, frozenset[int]] = {},
    ) -> JobFailures:
        """See `burst.lead.Queues`."""
        others = {job: name for job, name in queues.items() if job not in lent}
        failures = self._order(
            others,
            (
                ("job-manager.update", {"id": job, "updates": {QUEUE: queue}})
                for job, queue in others.items()
            ),
        )
        names = {job: queues[job] for job in lent}
        return {**failures, **confine_jobs(self._client, lent, names)}

    def end_housekeeping(self, ranks: frozenset[int], signum: int) -> None:
        """See `burst.lead.Housekeeper`."""
        end_housekeeping(self._client, ranks, signum)

    def check_scheduler(self, intake: IntakeSettings) -> None:
        """See `burst.lead.SchedulerHints`."""
        check_scheduler(self._client, intake)

    def read_access(self) -> GuestAccess:
        """See `burst.lead.Guests`."""
        config = self._client.ask("config.get")
        access = parse_access(config)
        self._identity = msgspec.structs.replace(
            self.identity(),
            access=access,
            queues=parse_queues(config.get("queues", {})),
            limits=parse_limits(config),
        )
        return access

    def check_users_apart(self, intake: IntakeSettings) -> None:
        """See `burst.lead.Guests`."""
        check_users_apart(self._client, intake)

    def send_leases(self, leases: LeasedRanks) -> None:
        """See `burst.lead.SchedulerHints`."""
        send_leases(self._client, leases)

    def send_starts(self, starts: Mapping[JobId, float]) -> None:
        """See `burst.lead.StartHints`."""
        send_starts(self._client, starts)

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
        exception = {"id": job, "severity": _FATAL, "type": "burst", "note": reason}
        self._client.ask("job-manager.raise", exception)

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """See `burst.lead.Lead`."""
        return finish_job(self._client, job, exit_status, output)

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
        if ranks:
            self._scheduler_status.forget(ranks)
            # update: of those that are drained already, the reason stays as it is.
            request = {"targets": format_idset(ranks), "mode": "update"}
            self._client.ask("resource.drain", {**request, "reason": reason})

    def undrain(self, ranks: frozenset[int]) -> None:
        """See `burst.lead.Lead`."""
        if ranks:
            self._scheduler_status.forget(ranks)
            # update: those that are not drained are passed over.
            request = {"targets": format_idset(ranks), "mode": "update"}
            self._client.ask("resource.undrain", request)

    def store(self) -> FluxStore:
        """See `burst.lead.Lead`."""
        return self._store

    def shared_store(self) -> SharedStore:
        """See `burst.lead.Lead`."""
        return SharedStore(self._uri)

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,
    ) -> None:
        """See `burst.lead.Lead`. Raises LeadError away from rank 0."""
        self._check_rank()
        service = FluxService(self._loop("burst-service"), handler, holder, admit)
        service.register(self._client)
        self._service = service

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = 10.0
    ) -> dict[str, Any]:
        """See `burst.lead.Lead`."""
        return call_service(self._client, method, payload, timeout)

    def shuts_down(self) -> bool:
        """See `burst.lead.OrderlyEnd`."""
        return self._state is not None and self._state.ends

    def close(self) -> None:
        """See `burst.lead.Lead`. May be called twice."""
        if self._service is not None:
            self._service.close()
        while self._loops:
            self._loops.pop().close()
        self._handle.close()

    def _check_rank(self) -> None:
        """Raise LeadError away from rank 0, where the lead's files are not readable."""
        rank = read_attribute(self._client, "rank")
        if rank != "0":
            raise LeadError(
                f"this is rank {rank} of the instance; the daemon belongs to rank 0",
                "run it on the lead, beside its broker",
            )

    def _loop(self, name: str) -> Loop:
        loop = Loop(Handle(self._uri), name)
        loop.on_lost = self._tell_loss
        self._loops.append(loop)
        return loop

    def _tell_loss(self) -> None:
        """Wake the daemon; `observe` then raises what was lost."""
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
