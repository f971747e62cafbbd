# SPDX-License-Identifier: MIT
"""`burst.lead.Lead` and all of its optional interfaces for Flux."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import msgspec

from burst.config import IntakeSettings
from burst.errors import BurstError, LeadError
from burst.flux.accounting import read_associations
from burst.flux.base_lead import BaseLead
from burst.flux.bindings import check_version
from burst.flux.confine import QUEUE, confine_jobs
from burst.flux.finish_job import finish_job
from burst.flux.frobnicator import check_users_apart
from burst.flux.handle import Handle, library_version
from burst.flux.housekeeping import Housekeeping, end_housekeeping
from burst.flux.identity import parse_access, parse_queues, read_identity
from burst.flux.journal import Journal
from burst.flux.queues import enqueue_jobs, prepare_queues, read_queues
from burst.flux.ranks import read_ranks
from burst.flux.rpc import RpcClient, read_attribute
from burst.flux.scheduler import (
    SchedulerReader,
    check_scheduler,
    send_leases,
    send_starts,
)
from burst.flux.scheduler_status import SchedulerStatus
from burst.flux.service import FluxService, call_service
from burst.flux.store import FluxStore, SharedStore
from burst.lead import (
    JobFailures,
    KnownJobs,
    RequestGate,
    RequestHandler,
    admit_all,
    no_known_jobs,
)
from burst.model.banks import Associations
from burst.model.job_limits import parse_limits
from burst.model.jobid import JobId
from burst.model.lead import GuestAccess, JobView, LeadIdentity, LeadView, LeasedRanks


def connect(uri: str) -> FluxLead:
    """Return a lead at this URI; empty means FLUX_URI or Flux's default.

    Only the connection is made; a guest, or a client on another rank, can go on to
    `call`. Raises LeadGone if there is no broker, LeadError if Flux's bindings cannot
    be found or are of another version than the broker.
    """
    lead = FluxLead(uri)
    try:
        lead.check_version()
    except BurstError:
        lead.close()
        raise
    return lead


class FluxLead(BaseLead):
    """An instance of Flux."""

    def __init__(self, uri: str) -> None:
        super().__init__(lambda: Handle(uri))
        self._uri = uri
        self._scheduler = SchedulerReader(self._client)
        self._scheduler_status = SchedulerStatus()
        self._events_seen = 0
        self._store = FluxStore(self._client)
        self._housekeeping = Housekeeping()
        self._has_enqueued = False
        """Whether jobs without a queue were given one. Once is enough: named queues
        come with a restart of the instance, which ends this object."""
        self._identity: LeadIdentity | None = None

    def check_version(self) -> None:
        """Raise LeadError unless Flux's bindings are of the broker's version."""
        check_version(read_attribute(self._client, "version"), library_version())

    def identity(self) -> LeadIdentity:
        """See `burst.lead.Lead`. Raises LeadError away from rank 0."""
        if self._identity is None:
            self._check_rank()
            self._identity = read_identity(self._client, self._store)
        return self._identity

    def listen(
        self, wake: Callable[[], None], known: KnownJobs = no_known_jobs
    ) -> None:
        """See `burst.lead.Lead`. Raises LeadError away from rank 0."""
        self._check_rank()
        super().listen(wake, known)

    def read_ranks(self, journal: Journal, jobs: Mapping[JobId, JobView]) -> LeadView:
        """See `BaseLead`."""
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
            queues=queues,
            housekeeping=kept.housekeeping,
            epilogs=kept.epilogs,
            scheduler=self._scheduler.read(),
        )

    def forget_ranks(self, ranks: frozenset[int]) -> None:
        """See `BaseLead`."""
        self._scheduler_status.forget(ranks)

    def associations(self, timeout: float) -> Associations | None:
        """See `burst.lead.Accounting`. Over a connection of its own."""
        with closing(Handle(self._uri)) as handle:
            return read_associations(RpcClient(handle), timeout)

    def prepare_queues(self, intake: IntakeSettings) -> None:
        """See `burst.lead.Queues`."""
        prepare_queues(self._client, intake)
        if not self._has_enqueued:
            enqueue_jobs(self._client)
            self._has_enqueued = True

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

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """See `burst.lead.Lead`."""
        return finish_job(self._client, job, exit_status, output)

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
        super().serve(handler, holder, admit)

    def serve_named(
        self, name: str, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        """See `burst.lead.NamedServices`. Raises LeadError away from rank 0."""
        self._check_rank()
        loop = self._loop(f"{name}-service")
        service = FluxService(loop, handler, holder, name=name)
        service.register(self._client)
        self._services.append(service)

    def call_named(
        self, name: str, method: str, payload: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        """See `burst.lead.NamedServices`."""
        return call_service(self._client, method, payload, timeout, name)

    def _check_rank(self) -> None:
        """Raise LeadError away from rank 0, where the lead's files are not readable."""
        rank = read_attribute(self._client, "rank")
        if rank != "0":
            raise LeadError(
                f"this is rank {rank} of the instance; the daemon belongs to rank 0",
                "run it on the lead, beside its broker",
            )
