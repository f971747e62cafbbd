# SPDX-License-Identifier: MIT
"""The lead interface: what the engine needs of a Flux instance.

Every lead has the methods of `Lead`. `WholeQueue`, `JobSubmitter`, `NamedServices`,
`Accounting`, `Queues`, `SchedulerHints`, `StartHints`, `Housekeeper`, `OrderlyEnd` and
`Guests` are optional interfaces, for leads that can do more; `queues_of`,
`scheduler_of`, `housekeeper_of`, `guests_of` and `submitter_of` return a lead as one of
them. The lead for Flux is in `burst.flux`; a package may have another lead, under the
scheme of its URI (entry points `burst.leads`). The contract suite is `tests/contract/`.

Methods are called from the engine's thread unless they say otherwise. All raise
Unreadable (LeadGone when the connection is lost; after it only `close` is called) and
Denied if the caller is not the instance owner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from burst.config import IntakeSettings
from burst.errors import BurstError, ConfigError, LeadError
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture
from burst.model.banks import Associations
from burst.model.event import Event
from burst.model.job_record import RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import GuestAccess, LeadIdentity, LeadView, LeasedRanks

JobFailures = Mapping[JobId, str]
"""The jobs for which a request failed, and why: the job is gone, or it is not allowed.
"""


MAX_VALUE_BYTES = 2**20
"""The longest value that a store takes, in bytes of UTF-8."""


ANSWER_S = 60.0
"""How long a caller waits for an answer of the daemon, in seconds: long enough for a
request that waits for the next tick."""
PING_S = 5.0
"""How long a caller waits for the answer to `ping`, for which the daemon waits for
nothing: later than that, it hangs."""


class Store(Protocol):
    """A store of records: text values by keys such as `burst/ID`.

    Keys consist of letters, digits, `-`, `_` and `/`; values are UTF-8 text of at most
    MAX_VALUE_BYTES bytes.
    """

    def load(self) -> dict[str, str]:
        """Return all records. Raises StoreError, Unreadable."""
        ...

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all of these values, or none of them; None deletes the key.

        Returns once the values survive a crash of the lead. A power failure of its host
        may undo the writes of the last seconds, but none in part. Raises StoreError,
        Unreadable.
        """
        ...


class ServiceRequest(msgspec.Struct, frozen=True):
    """One request to the service `burst`: `burst.METHOD` with a JSON object."""

    method: str
    payload: dict[str, Any]
    userid: int
    owner: bool
    """Whether the caller is the instance owner."""


RequestHandler = Callable[[ServiceRequest], dict[str, Any]]
"""Answers a request. Called on several threads; may block for seconds. If it raises a
BurstError, the caller gets its text (and Denied as Denied); for any other exception the
caller gets `internal error`, and the traceback is logged."""

RequestGate = Callable[[str, int, bool], None]
"""Decides whether a request is taken, before anything else is done about it.

Called with the method, the user id and whether that user is the owner. Raises
BurstError to refuse the request. Called on the thread that receives requests, so it
must be quick."""


def admit_all(_method: str, _userid: int, _owner: bool) -> None:
    """Take every request; a RequestGate."""


KnownJobs = Callable[[], Collection[JobId]]
"""Returns jobs that are to be shown although they may not be burstable. Called on any
thread; must be quick."""


def no_known_jobs() -> Collection[JobId]:
    """Return no job; a KnownJobs."""
    return ()


class Lead(Protocol):
    """A running instance, as its owner uses it. Every lead has these methods."""

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs; read once, then remembered."""
        ...

    def listen(
        self, wake: Callable[[], None], known: KnownJobs = no_known_jobs
    ) -> None:
        """Begin to follow jobs and ranks, on a thread and a handle of its own.

        `observe` then shows the burstable jobs and the jobs that `known` returns: jobs
        on record, which may have been marked as burstable by another attribute or rule.
        It is called each time the lead reads all jobs, from any thread. Jobs that have
        ended are shown for one more minute after `observe` has first shown that.
        `wake` is called from that thread whenever anything changed; it must be quick.
        Returns once the jobs that exist are known. When the job manager is reloaded,
        the lead reads all jobs again in the background; until then `observe` raises.
        """
        ...

    def observe(self) -> LeadView:
        """Return jobs, ranks and queues at one moment. `listen` must be called before.

        The view shows the effect of every earlier call of this client, so a change of
        urgency that the daemon did not make was made by the user.
        """
        ...

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """Set the urgency of each job to 0."""
        ...

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """Set the urgency of each job to the given value, 1 to 31."""
        ...

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """Restrict each pending job to own nodes and to these lent ranks.

        The job's own constraint is kept: `observe` shows it unchanged in the job's
        request, and the ranks as `confined_to`.
        """
        ...

    def write_memos(self, memos: Mapping[JobId, Mapping[str, Any]]) -> JobFailures:
        """Merge each mapping into the job's memo under `burst`; None deletes a key.

        Shown by `flux jobs -o '{user.burst.state}'` (flux-jobs(1)).
        """
        ...

    def fail_job(self, job: JobId, reason: str) -> None:
        """Raise a fatal exception of type `burst` on the job, with reason as its note.

        Raises LeadError if the job is gone.
        """
        ...

    def cancel_job(self, job: JobId, reason: str) -> None:
        """Cancel the job, with reason as the note of the exception.

        Raises LeadError if the job is gone.
        """
        ...

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """End a held job with the exit status and output of its run elsewhere.

        The exit status is 0 to 255. Jobs that depend on the job start as if it had run
        here. Returns False if the job is not held or the instance cannot do this; then
        `fail_job` still works. Raises LeadError if the job is gone.
        """
        ...

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return the whole jobspec (RFC 14) of a job, including its environment.

        Raises LeadError if the job is gone, JobspecError if it cannot be read.
        """
        ...

    def submitted_jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return the whole jobspec (RFC 14) of a job as its user submitted it.

        Later changes are not in it, such as constraints that confine the job, or
        another queue. Raises LeadError if the job is gone, JobspecError if it cannot be
        read.
        """
        ...

    def events(self, job: JobId) -> Sequence[Event]:
        """Return the events of a job (RFC 21), also of one that has ended.

        The last of them may be missing for a moment. Guests may ask for their own jobs.
        Raises LeadError if there is no such job, or it is another user's.
        """
        ...

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """Drain these ranks, so that no new job starts there.

        Ranks that are drained already keep their reason. If they have none, they get
        this one, as in Flux.

        Raises LeadError.
        """
        ...

    def undrain(self, ranks: frozenset[int]) -> None:
        """Undrain these ranks; ranks that are not drained stay as they are.

        Raises LeadError.
        """
        ...

    def store(self) -> Store:
        """Return the store for the daemon's records."""
        ...

    def shared_store(self) -> Store:
        """Return the same store for use from any thread, for records of packages.

        It may be used while other methods are called.
        """
        ...

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,
    ) -> None:
        """Register the service `burst`: the API, and the lock against a second daemon.

        A second daemon is told `holder` (pid, host, since). The service ends with this
        process. Raises ServiceTaken, which names the holder.
        """
        ...

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = ANSWER_S
    ) -> dict[str, Any]:
        """Call the daemon that serves this lead, from any rank, as owner or guest.

        Raises NoDaemon, Denied, or BurstError with the text that the daemon returned.
        """
        ...

    def close(self) -> None:
        """End threads and handles, and the service. Held jobs stay held."""
        ...


MayBurst = Callable[[int, Mapping[str, Any]], bool]
"""Tells whether a job without the attribute may burst all the same, from its user id
and its jobspec. Called on another thread; must be quick."""


class QueueListener(Protocol):
    """A receiver of changes to all jobs. Called on another thread; must be quick."""

    def changed(self) -> None:
        """Note that some job was submitted, started, ended or moved in the queue."""
        ...

    def ended(self, job: ActiveJob) -> None:
        """Note that a job has ended, and gave its nodes back if it had any."""
        ...

    def lost(self) -> None:
        """Note that the jobs are being read again.

        `ended` may not have been called for some jobs that ended.
        """
        ...


@runtime_checkable
class WholeQueue(Protocol):
    """An optional interface: a lead that shows jobs that are not burstable, too."""

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        """Follow all active jobs while there is a listener; None ends that.

        May be called before `listen`; if it is called after, the jobs are read again.
        `observe` then also shows the jobs for which `may_burst` returns True, as
        JobView with `burstable` False. `record` gets each event of every job, and also
        the earlier events of active jobs.
        """
        ...

    def queue_picture(self) -> QueuePicture:
        """Return all active jobs, as far as the lead has reported them.

        May be called from any thread. Raises Unreadable if no listener follows the
        jobs, or while they are read again.
        """
        ...

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return one active job as it is now; None if no active job has that id.

        Every job that was submitted before this call is known. May be called from any
        thread. Raises the same as `queue_picture`.
        """
        ...


@runtime_checkable
class Accounting(Protocol):
    """An optional interface: who may use which bank, according to flux-accounting."""

    def associations(self, timeout: float) -> Associations | None:
        """Return users and their banks; None if flux-accounting does not run.

        Waits at most `timeout` seconds for each answer. May be called from any thread,
        also while another method is called. Raises LeadError if flux-accounting does
        not answer, or answers with an error.
        """
        ...


@runtime_checkable
class Queues(Protocol):
    """An optional interface: named queues, which intake mode `queue` needs."""

    def prepare_queues(self, intake: IntakeSettings) -> None:
        """Stop the queue in which jobs wait, and start the one they are moved to.

        The latter stays stopped if there are other named queues and all of them are
        stopped. Pending jobs without a queue, submitted before there were any, get the
        default queue. Raises ConfigError that says what the instance lacks, and what
        to do.
        """
        ...

    def move(
        self,
        queues: Mapping[JobId, str],
        lent: Mapping[JobId, frozenset[int]] = {},
    ) -> JobFailures:
        """Put each job into another queue.

        Jobs in `lent` keep their own constraint and are confined to these ranks, as by
        `confine`; the ranks are empty for a queue that starts no jobs. The constraint
        of all other jobs becomes that of the queue.
        """
        ...


@runtime_checkable
class SchedulerHints(Protocol):
    """An optional interface: a scheduler that may be told which ranks are leased.

    Intake mode `scheduler` needs it.
    """

    def check_scheduler(self, intake: IntakeSettings) -> None:
        """Raise ConfigError unless bursts work with the scheduler that is loaded.

        In mode `scheduler` it must be one that takes leases. Raises Unreadable while no
        scheduler is loaded.
        """
        ...

    def send_leases(self, leases: LeasedRanks) -> None:
        """Tell the scheduler which ranks are leased, and for which jobs.

        Raises LeadError.
        """
        ...


@runtime_checkable
class Guests(Protocol):
    """An optional interface: a lead that keeps the jobs of its users apart."""

    def read_access(self) -> GuestAccess:
        """Return who may use the lead now, read anew from its configuration.

        `identity` then returns the same access, and the present queues and limits: a
        lead that has reloaded its configuration may have changed all of them.
        """
        ...

    def check_users_apart(self, intake: IntakeSettings) -> None:
        """Raise ConfigError if jobs can get lent nodes without the daemon.

        The frobnicator of `burst setup` for this intake mode prevents that.
        """
        ...


@runtime_checkable
class Housekeeper(Protocol):
    """An optional interface: housekeeping that runs after jobs (flux-housekeeping(1)).

    `observe` shows where it runs.
    """

    def end_housekeeping(self, ranks: frozenset[int], signum: int) -> None:
        """Send a signal to the housekeeping on these ranks. Raises LeadError."""
        ...


@runtime_checkable
class StartHints(Protocol):
    """An optional interface: a scheduler that tells users when their jobs start."""

    def send_starts(self, starts: Mapping[JobId, float]) -> None:
        """Tell the scheduler when pending jobs are expected to start.

        `starts` has all times that are known, in seconds since the epoch. The scheduler
        annotates the jobs with them. Raises LeadError.
        """
        ...


class NewJob(msgspec.Struct, frozen=True):
    """A job to submit."""

    jobspec: Mapping[str, Any]
    """A jobspec of version 1 (RFC 25) with its environment and working directory."""
    urgency: int = 16
    """0 to 31; 0 submits the job held."""


@runtime_checkable
class OrderlyEnd(Protocol):
    """An optional interface: a lead that announces its shutdown, unlike a crash."""

    def shuts_down(self) -> bool:
        """Return whether the lead has announced its shutdown since `listen`.

        Whoever starts the lead again starts the daemon with it. False if that is not
        known. May be called when the lead is gone.
        """
        ...


@runtime_checkable
class NamedServices(Protocol):
    """An optional interface: services with names for other programs of the owner."""

    def serve_named(
        self, name: str, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        """Register the service `name`, as `Lead.serve` registers `burst`.

        Requests may come from any user: the handler has to check who asks. Raises
        ServiceTaken, which names the holder.
        """
        ...

    def call_named(
        self, name: str, method: str, payload: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        """Call a method of the service `name`.

        Raises NoDaemon if nothing serves it, Denied, or BurstError with the text that
        the service returned.
        """
        ...


@runtime_checkable
class JobSubmitter(Protocol):
    """An optional interface: submits jobs as the calling user.

    It has a connection of its own, and may be called from any thread, also while other
    methods are called.
    """

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """Submit these jobs; return the id of each, or the error that refused it:
        JobRefused if the lead will never accept it.

        The jobs may get their ids, and so their places in the queue, in another order.
        Raises LeadGone, Unreadable: then any of them may have been submitted.
        """
        ...

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """Return the jobs of all users that have these names (`job.name`).

        Jobs that have ended are included. If several jobs have one name, the last one
        is returned. Raises LeadError.
        """
        ...

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """Return how these jobs ended.

        Jobs that have not ended, or that the lead does not know, are left out. Raises
        LeadError.
        """
        ...


def submitter_of(lead: Lead) -> JobSubmitter:
    """Return the lead as one that takes jobs. Raises LeadError if it takes none."""
    if isinstance(lead, JobSubmitter):
        return lead
    raise LeadError(f"a lead of kind {lead.identity().kind} takes no jobs from burst")


def queues_of(lead: Lead) -> Queues:
    """Return the lead as one with queues. Raises ConfigError if it has none."""
    if isinstance(lead, Queues):
        return lead
    raise _lacks(lead, "queue", "queues")


def scheduler_of(lead: Lead) -> SchedulerHints:
    """Return the lead as one whose scheduler takes leases; else raise ConfigError."""
    if isinstance(lead, SchedulerHints):
        return lead
    raise _lacks(lead, "scheduler", "scheduler that can be told of leased ranks")


def guests_of(lead: Lead) -> Guests:
    """Return the lead as one that keeps users apart; else raise ConfigError."""
    if isinstance(lead, Guests):
        return lead
    raise ConfigError(
        f"a lead of kind {lead.identity().kind} cannot keep its users apart",
        "set [plan] share_users = true if they may share bursts",
    )


def housekeeper_of(lead: Lead) -> Housekeeper:
    """Return the lead as one with housekeeping. Raises LeadError if it has none."""
    if isinstance(lead, Housekeeper):
        return lead
    raise LeadError(f"a lead of kind {lead.identity().kind} has no housekeeping")


def _lacks(lead: Lead, mode: str, what: str) -> ConfigError:
    return ConfigError(
        f"[intake] mode is {mode}, but a lead of kind {lead.identity().kind} has no"
        f" {what}",
        'set [intake] mode = "hold", which works with every lead',
    )
