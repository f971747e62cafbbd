# SPDX-License-Identifier: MIT
"""Messages between a lead and its clients on the same host.

A client numbers its ClientRequests; each gets one ClientResponse, or several if it
opens a stream, the last of which is marked. The lead sends a ServiceCall to the client
that registered the service `burst`. That client, and those with a stream, get
Heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.errors import (
    BurstError,
    Denied,
    JobspecError,
    LeadError,
    NoDaemon,
    ServiceTaken,
)
from burst.model.active_job import ActiveJob
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadView
from burst_embedded.wire import Goodbye, Heartbeat, Leave


class _Body(msgspec.Struct, frozen=True, tag=True):
    """Base of what can be called; the tag is the name of the class."""


class Identify(_Body, frozen=True):
    """Answer: LeadIdentity."""


class Submit(_Body, frozen=True):
    """Answer: the job's id."""

    jobspec: Mapping[str, Any]
    urgency: int


class SetUrgencies(_Body, frozen=True):
    """Set urgencies. Answer: what failed, by job."""

    urgencies: Mapping[JobId, int]


class SetConfinement(_Body, frozen=True):
    """Confine jobs to own nodes and these lent ranks. Answer: what failed, by job."""

    lent: Mapping[JobId, frozenset[int]]


class MergeMemos(_Body, frozen=True):
    """Merge into memos. Answer: what failed, by job."""

    memos: Mapping[JobId, Mapping[str, Any]]


class RaiseException(_Body, frozen=True):
    """Raise an exception of severity 0 on a job. Answer: nothing."""

    job: JobId
    kind: str
    note: str


class FinishJob(_Body, frozen=True):
    """End a held job with the result of a run elsewhere. Answer: whether it was."""

    job: JobId
    exit_status: int
    output: str


class DrainCall(_Body, frozen=True):
    """Drain ranks; those that are keep their reason. Answer: nothing."""

    ranks: frozenset[int]
    reason: str


class UndrainCall(_Body, frozen=True):
    """Undrain ranks. Answer: nothing."""

    ranks: frozenset[int]


class ListJobs(_Body, frozen=True):
    """Answer: a JobInfo for each of these jobs, or for all."""

    jobs: tuple[JobId, ...] = ()


class FindJobs(_Body, frozen=True):
    """Answer: the last job of each of these names, by name; only those there are."""

    names: tuple[str, ...]


class Lookup(_Body, frozen=True):
    """Answer: the job's jobspec."""

    job: JobId


class Attach(_Body, frozen=True):
    """Stream: pieces of the job's output, at last its JobInfo."""

    job: JobId


class WatchInstance(_Body, frozen=True):
    """Stream: an InstanceUpdate with all jobs wanted, then one at each change.

    Those are the burstable ones, which bear the attribute, and the `known` ones; all,
    with an ActiveWork for each, if `whole`.
    """

    attribute: str
    known: frozenset[JobId] = frozenset()
    whole: bool = False


class Sync(_Body, frozen=True):
    """Answer: the number of the last InstanceUpdate, which has all changes so far."""


class RegisterService(_Body, frozen=True):
    """Serve `burst` as long as this connection lives. Answer: nothing."""

    pid: int
    host: str
    since: float
    """Seconds since the epoch."""


class RequestService(_Body, frozen=True):
    """Call the service `burst`. Answer: its answer."""

    method: str
    payload: Mapping[str, Any]


Body = (
    Identify
    | Submit
    | SetUrgencies
    | SetConfinement
    | MergeMemos
    | RaiseException
    | FinishJob
    | DrainCall
    | UndrainCall
    | ListJobs
    | FindJobs
    | Lookup
    | Attach
    | WatchInstance
    | Sync
    | RegisterService
    | RequestService
)


class WireError(msgspec.Struct, frozen=True):
    """A BurstError on its way over the wire."""

    kind: Literal["burst", "denied", "jobspec", "lead", "nodaemon", "taken"]
    what: str
    advice: str = ""

    def error(self) -> BurstError:
        """Return it as it was raised."""
        return _KINDS[self.kind](self.what, self.advice)


_KINDS = {
    "denied": Denied,
    "jobspec": JobspecError,
    "nodaemon": NoDaemon,
    "taken": ServiceTaken,
    "lead": LeadError,
    "burst": BurstError,
}


def wire_error(error: BurstError) -> WireError:
    """Return the error as it goes over the wire, as near to its class as is known."""
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(error, cls))
    return msgspec.convert(
        {"kind": kind, "what": error.what, "advice": error.advice}, WireError
    )


class _Frame(msgspec.Struct, frozen=True, tag=True):
    """Base of what goes over the clients' socket."""


class ClientRequest(_Frame, frozen=True):
    """Client to lead."""

    number: int
    body: Body


class ClientResponse(_Frame, frozen=True):
    """Lead to client."""

    number: int
    payload: Any = None
    fault: WireError | None = None
    last: bool = True


class ServiceCall(_Frame, frozen=True):
    """Lead to the client that serves `burst`: another client called it."""

    number: int
    method: str
    payload: dict[str, Any]
    userid: int


class ServiceReply(_Frame, frozen=True):
    """Answer to a ServiceCall."""

    number: int
    payload: Any = None
    fault: WireError | None = None


FromClient = ClientRequest | ServiceReply | Goodbye
ToClient = ClientResponse | ServiceCall | Heartbeat | Leave
_FROM_CLIENT: msgspec.msgpack.Decoder[FromClient] = msgspec.msgpack.Decoder(FromClient)
_TO_CLIENT: msgspec.msgpack.Decoder[ToClient] = msgspec.msgpack.Decoder(ToClient)


def decode_from_client(frame: bytes) -> FromClient:
    """Return what a client said. Raises msgspec.MsgspecError."""
    return _FROM_CLIENT.decode(frame)


def decode_to_client(frame: bytes) -> ToClient:
    """Return what the lead said. Raises msgspec.MsgspecError."""
    return _TO_CLIENT.decode(frame)


class ActiveWork(msgspec.Struct, frozen=True):
    """A job that changed, burstable or not, and what its user submitted."""

    job: ActiveJob
    over: bool
    """Whether it has ended."""
    jobspec: Mapping[str, Any]
    events: tuple[Event, ...]


class InstanceUpdate(msgspec.Struct, frozen=True):
    """How the instance is now, with the jobs that changed since the last one."""

    number: int
    view: LeadView
    work: tuple[ActiveWork, ...] = ()


class JobInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One job, for people and programs that ask for it."""

    id: JobId
    userid: int
    state: JobState
    urgency: int
    nnodes: int
    """Of its allocation; before that, what it asks for, 0 for any number."""
    ntasks: int
    hosts: tuple[str, ...]
    result: str
    exit_code: int
    """Of the task with the highest, 128 and the signal's number if killed by one."""
    t_submit: float
    t_start: float
    t_finish: float
    command: tuple[str, ...]
    memo: Mapping[str, Any]
    events: tuple[Event, ...]
    output_cut: bool
    """Whether it wrote more than is kept."""
