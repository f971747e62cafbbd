# SPDX-License-Identifier: MIT
"""THE lead interface: what the engine needs of a Flux instance.

Implemented for Flux in `burst.flux` and for the embedded lead in
`burst.embedded.lead_client`; one contract suite, `tests/contract/`, runs against both.

Methods are called from the engine's thread unless they say otherwise. All raise
Unreadable (LeadGone when the connection is lost, after which only `close` is called)
and Denied where the caller is not the instance owner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from burst.config import IntakeSettings
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView, LeasedRanks

JobFailures = Mapping[JobId, str]
"""Jobs for which a request failed, and what the lead said: gone, or not allowed."""


MAX_VALUE_BYTES = 2**20
"""Bytes of UTF-8 that one value of a store may have."""


class Store(Protocol):
    """Where records live: keys such as `burst/ID` to text.

    Keys are of letters, digits, `-`, `_` and `/`; values are UTF-8 text of at most
    LARGEST_VALUE bytes.
    """

    def load(self) -> dict[str, str]:
        """Return everything that is kept. Raises StoreError, Unreadable."""
        ...

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Keep all these values, or none; None deletes the key.

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
"""Answers a request. Called from threads of its own, several at a time; may block for
seconds. A BurstError it raises reaches the caller as that text (Denied as such);
anything else reaches him as an internal error and the log with its traceback."""


class Lead(Protocol):
    """A running instance, seen by its owner."""

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs; read once, then remembered."""
        ...

    def remember(self, jobs: Collection[JobId]) -> None:
        """Show these jobs too, burstable or not. To be called before `listen`.

        Those on record: what marks burstable jobs may have been another attribute.
        """
        ...

    def listen(self, wake: Callable[[], None]) -> None:
        """Begin to follow jobs and ranks, on a thread and a handle of its own.

        `wake` is called from that thread whenever anything changed; it must be quick.
        Returns once the jobs that exist are known. Losses (job manager reloaded) are
        repaired in the background by a new sync; until then `observe` raises.
        """
        ...

    def observe(self) -> LeadView:
        """Return one consistent picture. Needs `listen` before.

        What was ordered by this client before is seen to be done, so that a change of
        urgency that we did not order is the user's.
        """
        ...

    def hold(self, jobs: Sequence[JobId]) -> JobFailures:
        """Set the urgency of each job to 0."""
        ...

    def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
        """Set the urgency of each job to the given value, 1 to 31."""
        ...

    def prepare(self, intake: IntakeSettings) -> None:
        """Make sure that jobs can come in that way: its scheduler, its queues.

        Raises ConfigError that says what the instance lacks, and what to do.
        """
        ...

    def move(self, queues: Mapping[JobId, str]) -> JobFailures:
        """Put each job into another queue."""
        ...

    def send_leases(self, leases: LeasedRanks) -> None:
        """Tell the scheduler whose the leased ranks are. Raises LeadError."""
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

    def jobspec(self, job: JobId) -> Mapping[str, Any]:
        """Return the whole jobspec (RFC 14) of a job, its environment included.

        Raises LeadError if the job is gone, JobspecError if it cannot be read.
        """
        ...

    def events(self, job: JobId) -> Sequence[Event]:
        """Return all that happened to a job (RFC 21), also of one that has ended.

        The last of them may be missing for a moment. For its owner, too, where he is a
        guest. Raises LeadError if there is no such job, or it is another's.
        """
        ...

    def drain(self, ranks: frozenset[int], reason: str) -> None:
        """Have no new job start on these ranks; one drained already keeps its reason.

        Raises LeadError.
        """
        ...

    def undrain(self, ranks: frozenset[int]) -> None:
        """Let jobs start on these ranks again. Those not drained are passed over.

        Raises LeadError.
        """
        ...

    def store(self) -> Store:
        """Return where records are kept, next to the jobs they serve."""
        ...

    def serve(self, handler: RequestHandler, holder: Mapping[str, Any]) -> None:
        """Register the service `burst`: the lock against a second daemon, and our API.

        `holder` (pid, host, since) is what a second daemon is told of us. The service
        is gone when this process is. Raises ServiceTaken naming the holder.
        """
        ...

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = 10.0
    ) -> dict[str, Any]:
        """Ask the daemon that serves this lead, from any rank, as owner or guest.

        Raises NoDaemon, Denied, BurstError with what the daemon said.
        """
        ...

    def close(self) -> None:
        """End threads and handles, and the service. Held jobs stay held."""
        ...
