# SPDX-License-Identifier: MIT
"""The one protocol of the lead, and sockets for both of its sides.

Whoever connects, a client on the same host or a follower over TCP, sends Requests, each
for a method of the lead, and gets a Response of the same number; or several, of which
the last is marked: a stream. A Request of number 0 is answered only if it fails. All
get a Response of number 0 twice a second, which shows that the lead lives, and a last
one before it stops. They answer that with the method `goodbye`, which also tells that
they leave by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import zmq

from burst.decode import from_plain, prepared
from burst.errors import (
    BurstError,
    Denied,
    JobspecError,
    LeadError,
    NoDaemon,
    ServiceTaken,
    StoreError,
)
from burst_embedded.boot import BrokerConfig

PROTOCOL = "2.0.0"
"""Version of the protocol; MAJOR.MINOR of both sides must be the same."""
BEAT_S = 0.5
"""Seconds between two signs of life."""
SILENCE_MS = 5000
"""ZeroMQ closes a connection over which nothing came for this long. A process that ends
closes it at once; this finds one that hangs, and a busy host may give one no turn for
seconds."""
GOODBYE_S = 1.0
"""A lead that stops waits so long for the goodbye of those that it has told."""
OUTPUT_LIMIT = 256 * 1024
"""Bytes that are kept of the output of one job, and sent of that of one task."""
_NIL = msgspec.Raw(msgspec.msgpack.encode(None))
_KINDS: Mapping[str, type[BurstError]] = {
    "denied": Denied,
    "jobspec": JobspecError,
    "nodaemon": NoDaemon,
    "taken": ServiceTaken,
    "store": StoreError,
    "lead": LeadError,
    "burst": BurstError,
}


class Fault(msgspec.Struct, frozen=True):
    """A BurstError on its way over the wire."""

    kind: Literal["burst", "denied", "jobspec", "lead", "nodaemon", "store", "taken"]
    what: str
    advice: str = ""

    def error(self) -> BurstError:
        """Return it as it was raised."""
        return _KINDS[self.kind](self.what, self.advice)


def fault_of(error: BurstError) -> Fault:
    """Return the error as it goes over the wire, as near to its class as is known."""
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(error, cls))
    told = {"kind": kind, "what": error.what, "advice": error.advice}
    return from_plain(told, Fault)


class Request(msgspec.Struct, frozen=True, array_like=True):
    """To the lead: call a method."""

    number: int
    method: str
    args: msgspec.Raw


class Response(msgspec.Struct, frozen=True, array_like=True):
    """From the lead."""

    number: int
    payload: msgspec.Raw = _NIL
    fault: Fault | None = None
    last: bool = True

    @property
    def is_farewell(self) -> bool:
        """Whether it says that the lead stops."""
        return not self.number and self.last and self.fault is None

    def read(self, kind: Any) -> Any:
        """Return the payload as that type. Raises the error that the lead answers."""
        if self.fault:
            raise self.fault.error()
        return msgspec.msgpack.decode(self.payload, type=prepared(kind))


class _Tagged(msgspec.Struct, frozen=True, tag=True):
    """Base of what lead and followers tell each other; the tag is the class's name."""


class RunTasks(_Tagged, frozen=True):
    """To a follower: start the processes of a job that belong to this rank."""

    job: int
    tasks: tuple[int, ...]
    """Task ranks, one process each."""
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


class KillTasks(_Tagged, frozen=True):
    """To a follower: end a job's tasks by SIGTERM, and by SIGKILL after a grace."""

    job: int


class Output(_Tagged, frozen=True):
    """A piece of what a task wrote; stream is 1 or 2."""

    job: int
    task: int
    stream: int
    data: bytes


class Ended(_Tagged, frozen=True):
    """A task is over; status as wait(2) has it."""

    job: int
    task: int
    status: int


class ServiceCall(msgspec.Struct, frozen=True):
    """What the client that serves `burst` is to `answer`, by its number."""

    number: int
    method: str
    payload: dict[str, Any]
    userid: int


def encode_request(number: int, method: str, args: tuple[Any, ...]) -> bytes:
    """Return a Request as it goes over the wire."""
    raw = msgspec.Raw(msgspec.msgpack.encode(args))
    return msgspec.msgpack.encode(Request(number, method, raw))


decode_request = msgspec.msgpack.Decoder(prepared(Request)).decode
"""Raises msgspec.MsgspecError."""
decode_response = msgspec.msgpack.Decoder(prepared(Response)).decode
"""Raises msgspec.MsgspecError."""


def calling_socket(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    """Return a socket to the lead, on which nothing is queued while it is away."""
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.SNDHWM, 0)
    _notice_silence(socket)
    return socket


def follower_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig
) -> zmq.Socket[bytes]:
    """Return a calling socket that talks to the lead with this certificate alone."""
    socket = calling_socket(context)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
    socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, boot.certificate.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
    socket.setsockopt(zmq.CURVE_SERVERKEY, boot.certificate.public)
    return socket


def serving_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig | None = None
) -> zmq.Socket[bytes]:
    """Return the lead's socket; sending to one that is gone raises EHOSTUNREACH.

    With `boot` it is for followers, and asks ZAP about each key that connects.
    """
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.LINGER, 1000)
    socket.setsockopt(zmq.SNDHWM, 0)
    _notice_silence(socket)
    if boot:
        socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
        socket.setsockopt(zmq.ZAP_DOMAIN, b"burst")
    return socket


def _notice_silence(socket: zmq.Socket[bytes]) -> None:
    """Have ZeroMQ close connections that are silent; it probes them by itself."""
    socket.setsockopt(zmq.HEARTBEAT_IVL, int(BEAT_S * 1000))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
