# SPDX-License-Identifier: MIT
"""The lead interface: what the engine needs of a Flux instance.

`Lead` is what every lead does. `WholeQueue`, `JobSubmitter`, `NamedServices`,
`Accounting`, `Queues`, `SchedulerHints`, `Housekeeper` and `Guests` are optional
interfaces: a lead that tells of all its jobs, takes jobs from the daemon, has services
of other names, tells of the banks of users, has queues, a scheduler that can be told of
leases, housekeeping, or guests, implements them too;
`queues_of`, `scheduler_of`, `housekeeper_of` and `guests_of` return the last four.
Implemented for Flux in `burst.flux`; a package may have another lead, under the scheme
of its URI (entry points `burst.leads`). The contract suite is `tests/contract/`.

Methods are called from the engine's thread unless they say otherwise. All raise
Unreadable (LeadGone when the connection is lost, after which only `close` is called)
and Denied where the caller is not the instance owner.
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
"""Jobs for which a request failed, and why: the job is gone, or it is not allowed."""


MAX_VALUE_BYTES = 2**20
"""Bytes of UTF-8 that one value of a store may have."""


ANSWER_S = 60.0
"""Seconds in which a daemon has answered, also what waits for its next tick."""


class Store(Protocol):
    """Where records live: keys such as `burst/ID` to text.

    Keys are of letters, digits, `-`, `_` and `/`; values are UTF-8 text of at most
    MAX_VALUE_BYTES bytes.
    """

    def load(self) -> dict[str, str]:
        """Return all records. Raises StoreError, Unreadable."""
        ...

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all of these values, or none of them; None deletes the key.

        Returns once they survive a crash of the lead and of the machine.
        Raises StoreError, Unreadable.
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
"""Answers a request. Called on several threads; may block for seconds. The caller gets
the text of a BurstError it raises (of Denied as Denied), and `internal error` for any
other exception, whose traceback is logged."""

RequestGate = Callable[[str, int, bool], None]
"""Called with method, userid and whether that is the owner, before anything is done
about a request. Raises BurstError for one that is not taken. Called on the thread that
receives, so it must be quick."""


def admit_all(_method: str, _userid: int, _owner: bool) -> None:
    """Take every request."""


class Lead(Protocol):
    """A running instance, as its owner uses it. Every lead has these methods."""

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs; read once, then remembered."""
        ...

    def listen(self, wake: Callable[[], None], known: Collection[JobId] = ()) -> None:
        """Begin to follow jobs and ranks, on a thread and a handle of its own.

        `observe` then shows the burstable jobs and those in `known`: jobs on record,
        which another attribute may have marked as burstable. Those of them that have
        ended are shown, too, for a minute.
        `wake` is called from that thread whenever anything changed; it must be quick.
        Returns once the jobs that exist are known. When the job manager is reloaded,
        the lead reads all jobs again in the background; until then `observe` raises.
        """
        ...

    def observe(self) -> LeadView:
        """Return jobs, ranks and queues as of one moment. Call `listen` before.

        It shows the effect of every earlier call of this client, so a change of
        urgency that the daemon did not make is the user's.
        """
        ...

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """Set the urgency of each job to 0."""
        ...

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """Set the urgency of each job to the given value, 1 to 31."""
        ...

    def confine(self, lent: Mapping[JobId, frozenset[int]]) -> JobFailures:
        """Let each pending job run on own nodes and on these lent ranks only.

        Its own constraint is kept: `observe` shows it unchanged in the job's request,
        and the ranks as `confined_to`.
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

    def finish_job(self, job: JobId, exit_status: int, output: str) -> bool:
        """End a held job with the exit status and output of its run elsewhere.

        The exit status is 0 to 255. Jobs that depend on it start as if it had run here.
        Returns False, and changes nothing that matters to `fail_job`, where the job is
        not held or the instance cannot do this. Raises LeadError if the job is gone.
        """
        ...

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return the whole jobspec (RFC 14) of a job, its environment included.

        Raises LeadError if the job is gone, JobspecError if it cannot be read.
        """
        ...

    def submitted_jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return the whole jobspec (RFC 14) of a job as its user submitted it.

        What was changed since is not in it: constraints that confine it, another queue.
        Raises LeadError if the job is gone, JobspecError if it cannot be read.
        """
        ...

    def events(self, job: JobId) -> Sequence[Event]:
        """Return the events of a job (RFC 21), also of one that has ended.

        The last of them may be missing for a moment. Guests may ask for their own jobs.
        Raises LeadError if there is no such job, or it is another user's.
        """
        ...

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """Drain these ranks: no new job starts there. Drained ones keep their reason.

        Raises LeadError.
        """
        ...

    def undrain(self, ranks: frozenset[int]) -> None:
        """Undrain these ranks. Those that are not drained are left as they are.

        Raises LeadError.
        """
        ...

    def store(self) -> Store:
        """Return the store for the daemon's records."""
        ...

    def shared_store(self) -> Store:
        """Return the same store for use from any thread, also while other methods are
        called: for records of packages.
        """
        ...

    def serve(
        self,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,
    ) -> None:
        """Register the service `burst`: our API, and the lock against a second daemon.

        A second daemon is told `holder` (pid, host, since). The service ends with this
        process. Raises ServiceTaken naming the holder.
        """
        ...

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = ANSWER_S
    ) -> dict[str, Any]:
        """Call the daemon that serves this lead, from any rank, as owner or guest.

        Raises NoDaemon, Denied, BurstError with what the daemon said.
        """
        ...

    def close(self) -> None:
        """End threads and handles, and the service. Held jobs stay held."""
        ...


MayBurst = Callable[[int, Mapping[str, Any]], bool]
"""Tells of a user id and a jobspec without the attribute whether the job may burst
all the same. Called on another thread; must be quick."""


class QueueListener(Protocol):
    """What is told of all jobs of a lead. Called on another thread; must be quick."""

    def changed(self) -> None:
        """Some job was submitted, started or ended, or has another place in line."""
        ...

    def ended(self, job: ActiveJob) -> None:
        """A job has ended, and gave its nodes back if it had any."""
        ...

    def lost(self) -> None:
        """The jobs are being read again; some may have ended that were not told of."""
        ...


@runtime_checkable
class WholeQueue(Protocol):
    """An optional interface: what is known of jobs that are not burstable, too."""

    def follow_queue(
        self,
        listener: QueueListener | None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        """Follow all active jobs as long as there is a listener; before `listen`, too.

        `observe` then also shows jobs that `may_burst` tells to be such, as JobView
        with `burstable` False. `record` gets each event of any job; of active jobs
        those from before, too. After `listen`, the jobs are read again.
        """
        ...

    def queue_picture(self) -> QueuePicture:
        """Return all active jobs, as far as the lead has told. From any thread.

        Raises Unreadable where nobody follows them, or while they are read again.
        """
        ...

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return one active job as it is now; None if there is none of that id.

        One that was submitted before this was called is known. From any thread. Raises
        as `queue_picture`.
        """
        ...


@runtime_checkable
class Accounting(Protocol):
    """An optional interface: who may use which bank, as flux-accounting has it."""

    def associations(self, timeout: float) -> Associations | None:
        """Return users and their banks; None where flux-accounting does not run.

        It has so many seconds for each answer. From any thread, also while another
        method is called. Raises LeadError where it does not answer, or with an error.
        """
        ...


@runtime_checkable
class Queues(Protocol):
    """An optional interface: named queues, which intake mode `queue` needs."""

    def prepare_queues(self, intake: IntakeSettings) -> None:
        """Stop the queue in which jobs wait, and start the one they are moved to.

        This one is left stopped while all other named queues are, if there are others.
        Jobs that wait in no queue, as there were none before, get the default one.
        Raises ConfigError that says what the instance lacks, and what to do.
        """
        ...

    def move(
        self,
        queues: Mapping[JobId, str],
        lent: Mapping[JobId, frozenset[int]] = {},
    ) -> JobFailures:
        """Put each job into another queue.

        Those in `lent` keep their own constraint and are confined to these ranks, as by
        `confine`, where there are none for a queue that starts no job. Of all others
        the constraint becomes that of the queue.
        """
        ...


@runtime_checkable
class SchedulerHints(Protocol):
    """An optional interface: a scheduler that may be told which ranks are leased.

    Intake mode `scheduler` needs it.
    """

    def check_scheduler(self, intake: IntakeSettings) -> None:
        """Raise ConfigError unless bursts work with the scheduler that is loaded.

        In mode `scheduler` it must be one that can be told. Raises Unreadable while
        none is loaded.
        """
        ...

    def send_leases(self, leases: LeasedRanks) -> None:
        """Tell the scheduler which ranks are leased, and for which jobs.

        Raises LeadError.
        """
        ...


@runtime_checkable
class Guests(Protocol):
    """An optional interface: users other than the owner, whose jobs are kept apart."""

    def read_access(self) -> GuestAccess:
        """Return who may use the lead now; `identity` tells the same from then on.

        A lead that reads its configuration again may have let guests in, and may have
        other queues and limits, which `identity` tells then, too.
        """
        ...

    def check_users_apart(self, intake: IntakeSettings) -> None:
        """Raise ConfigError unless no job can get lent nodes by itself.

        So it is with the frobnicator of `burst setup`, for this intake mode.
        """
        ...


@runtime_checkable
class Housekeeper(Protocol):
    """An optional interface: housekeeping that runs after jobs (flux-housekeeping(1)).

    `observe` shows where it runs.
    """

    def end_housekeeping(self, ranks: frozenset[int], signum: int) -> None:
        """Send what runs on these ranks a signal. Raises LeadError."""
        ...


@runtime_checkable
class StartHints(Protocol):
    """An optional interface: a scheduler that tells users when their jobs start."""

    def send_starts(self, starts: Mapping[JobId, float]) -> None:
        """Tell the scheduler when pending jobs are expected to start.

        These are all that are known, in seconds since the epoch. It annotates the jobs.
        Raises LeadError.
        """
        ...


class NewJob(msgspec.Struct, frozen=True):
    """A job to submit."""

    jobspec: Mapping[str, Any]
    """Of version 1 (RFC 25), with its environment and working directory."""
    urgency: int = 16
    """0 to 31; 0 submits it held."""


@runtime_checkable
class OrderlyEnd(Protocol):
    """An optional interface: a lead that tells its shutdown from a crash."""

    def shuts_down(self) -> bool:
        """Return whether the lead has said, since `listen`, that it shuts down.

        Whoever starts it again starts the daemon with it. False where it is not known.
        May be called when the lead is gone.
        """
        ...


@runtime_checkable
class NamedServices(Protocol):
    """An optional interface: services of other programs of the owner, by name."""

    def serve_named(
        self, name: str, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        """Register the service of that name, as `Lead.serve` does `burst`.

        Its requests are any user's: the handler has to look who asks. Raises
        ServiceTaken naming the holder.
        """
        ...

    def call_named(
        self, name: str, method: str, payload: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        """Call a method of the service of that name.

        Raises NoDaemon where nothing serves it, Denied, and BurstError with what it
        said.
        """
        ...


@runtime_checkable
class JobSubmitter(Protocol):
    """An optional interface: submits jobs as the user who calls it.

    Over a connection of its own, from any thread, also while other methods are called.
    """

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        """Submit these jobs; return the id of each, or why it has none.

        They may get their ids, and so their places in the queue, in another order.
        Raises LeadGone, Unreadable: then any of them may have been submitted.
        """
        ...

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        """Return the jobs of all users that have these names (`job.name`), ended ones
        too. Of several with one name it is the last. Raises LeadError.
        """
        ...

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        """Return how these jobs ended; nothing of those that have not, or that the lead
        does not know. Raises LeadError.
        """
        ...


def submitter_of(lead: Lead) -> JobSubmitter:
    """Return what submits jobs to the lead. Raises LeadError where nothing does."""
    if isinstance(lead, JobSubmitter):
        return lead
    raise LeadError(f"a lead of kind {lead.identity().kind} takes no jobs from burst")


def queues_of(lead: Lead) -> Queues:
    """Return the lead's queues. Raises ConfigError where it has none."""
    if isinstance(lead, Queues):
        return lead
    raise _lacks(lead, "queue", "queues")


def scheduler_of(lead: Lead) -> SchedulerHints:
    """Return the lead's scheduler. Raises ConfigError where it takes no leases."""
    if isinstance(lead, SchedulerHints):
        return lead
    raise _lacks(lead, "scheduler", "scheduler that can be told of leased ranks")


def guests_of(lead: Lead) -> Guests:
    """Return the lead's guests. Raises ConfigError where it cannot keep them apart."""
    if isinstance(lead, Guests):
        return lead
    raise ConfigError(
        f"a lead of kind {lead.identity().kind} cannot keep its users apart",
        "set [plan] share_users = true if they may share bursts",
    )


def housekeeper_of(lead: Lead) -> Housekeeper:
    """Return the lead's housekeeping. Raises LeadError where it has none."""
    if isinstance(lead, Housekeeper):
        return lead
    raise LeadError(f"a lead of kind {lead.identity().kind} has no housekeeping")


def _lacks(lead: Lead, mode: str, what: str) -> ConfigError:
    return ConfigError(
        f"[intake] mode is {mode}, but a lead of kind {lead.identity().kind} has no"
        f" {what}",
        'set [intake] mode = "hold", which works with every lead',
    )
