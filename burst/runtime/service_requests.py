# SPDX-License-Identifier: MIT
"""Requests to the service `burst`: their shapes, and who may send which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from burst.core import burst_requests
from burst.core.plan.demands import Demand
from burst.decode import from_plain
from burst.errors import MALFORMED, BurstError, Denied
from burst.lead import ServiceRequest
from burst.model.burst import Isolated, Tag
from burst.model.event import LONGEST_NOTE
from burst.model.jobid import JobId, parse_jobid
from burst.runtime.snapshot import Snapshot

MAX_NAME = 255
"""Characters of a name or an id in a request."""
_LONGEST_HOSTLIST = 2**16
_LONGEST_IMAGE = 4096
_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
_Asked = TypeVar("_Asked", bound=msgspec.Struct)


class NamedRequest(msgspec.Struct):
    """What requests name; each method reads the fields that it needs."""

    id: _Name = ""
    ids: list[_Name] = []
    burst: _Name = ""
    provider: _Name = ""
    tag: _Name = ""
    note: str = ""
    all: bool = False
    yes: bool = False
    force: bool = False


class StatusRequest(msgspec.Struct):
    """What `burst status` and `burst watch` ask for."""

    jobs: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many of the jobs that wait are listed at most."""


class BurstRequest(msgspec.Struct):
    """What `burst request` asks for."""

    nodes: Annotated[int, msgspec.Meta(le=2**31 - 1)] = 0
    provider: _Name = ""
    slot: Annotated[str, msgspec.Meta(max_length=_LONGEST_HOSTLIST)] = ""
    isolated: Isolated | None = None
    tag: Annotated[str, msgspec.Meta(max_length=MAX_NAME, pattern=r"^[!-~]*\Z")] = ""
    """The tag of the jobs that alone may have the nodes; empty for any jobs."""
    offer: _Name = ""
    """The one offer to use; empty for any."""
    image: Annotated[str, msgspec.Meta(max_length=_LONGEST_IMAGE)] = ""
    """Container image of the nodes; empty for that of their provider."""
    least: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """The fewest nodes to accept if no more can be had; 0: all or none."""
    grow: bool = False
    """Whether to grow a burst with the same tag, if one can, instead of a new burst."""
    note: Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)] = ""
    """The reason, for the record of a burst that grows."""


class IsolateRequest(msgspec.Struct):
    """Asks for the jobs with a tag to run in isolated bursts, one for each job."""

    tag: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
    nodes: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    """How many nodes these bursts may have together."""
    provider: _Name
    offer: _Name = ""
    """The one offer to use; empty for any."""
    image: Annotated[str, msgspec.Meta(max_length=_LONGEST_IMAGE)] = ""
    """Container image of the nodes; empty for that of their provider."""


class SizeRequest(msgspec.Struct):
    """What `burst resize` asks for."""

    burst: _Name
    nodes: Annotated[int, msgspec.Meta(le=2**31 - 1)]
    note: Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)] = ""


class CostRequest(msgspec.Struct):
    """What `burst cost` asks for."""

    by: Literal["", "user", "bank", "queue", "provider", "rule", "job"] = ""
    since: Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\d)?\Z")] = ""
    """A day; empty for all that is known."""


class ReportRequest(msgspec.Struct):
    """What `burst report` asks for."""

    since: Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\d)?\Z")] = ""
    """A day; empty for what is on record, without the archive."""


class PolicyRequest(msgspec.Struct):
    """Which rules `burst policy check` is about."""

    tables: dict[str, Any] | None = None
    """The tables of a file that rules are checked by; None for the daemon's own."""
    where: str = ""
    """What errors call the file."""


Method = Callable[[ServiceRequest, Snapshot], dict[str, Any]]
"""Answers a request by the last tick. Raises BurstError, Denied."""


def owner_only(method: Method) -> Method:
    """Return the method for the instance owner; it raises Denied for others."""

    def guarded(request: ServiceRequest, snapshot: Snapshot) -> dict[str, Any]:
        if not request.owner:
            raise Denied(f"{request.method}: only the instance owner may do that")
        return method(request, snapshot)

    return guarded


def read_request(request: ServiceRequest, shape: type[_Asked]) -> _Asked:
    """Return what a request says. Raises BurstError if it does not fit `shape`."""
    try:
        return from_plain(request.payload, shape)
    except MALFORMED as error:
        raise BurstError(f"{request.method[:MAX_NAME]}: {error}") from None


def demand_of(asked: BurstRequest, userid: int) -> Demand:
    """Return what a request of this user asks for. Raises BurstError."""
    if asked.image and not (asked.tag and asked.provider):
        raise BurstError(
            "nodes with an image of their own are for tagged jobs only, and not every"
            " provider has images",
            "--image needs --tag and --provider",
        )
    if asked.isolated is None:
        demand = burst_requests.request_nodes(asked.nodes, asked.provider, asked.slot)
    elif asked.tag:
        raise BurstError(
            "an isolated burst has no tag: its jobs are submitted in it, by whoever"
            " may reach it"
        )
    else:
        demand = burst_requests.request_isolated(
            asked.nodes, asked.provider, asked.isolated
        )
    return msgspec.structs.replace(
        demand,
        preferences=msgspec.structs.replace(demand.preferences, offer=asked.offer),
        tag=Tag(asked.tag, userid) if asked.tag else None,
        image=asked.image,
    )


def parse_job(text: str) -> JobId:
    """Return the job of an id in any form that Flux takes. Raises BurstError."""
    try:
        return parse_jobid(text)
    except ValueError as error:
        raise BurstError(str(error)) from None
