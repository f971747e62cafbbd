# SPDX-License-Identifier: MIT
"""The one protocol of the lead, and sockets for both of its sides.

It is Flux's, as far as a lead for bursts needs it: requests have a topic and a JSON
object, responses the request's matchtag and an errno, which ends a stream with ENODATA.
So `burst.flux` is the client. Under it are frames of ZeroMQ, over a Unix socket for
clients on the same host and over TCP with CURVE for followers. ZeroMQ closes those of
who is gone or hangs. The lead finds them closed as it sends all a message of tag 0 and
without a topic now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import zmq

from burst.decode import json_decoder, prepared
from burst.errors import LeadError
from burst_embedded.boot import BrokerConfig

PROTOCOL = "3.0.0"
"""Version of the protocol; MAJOR.MINOR of both sides must be the same."""
BEAT_S = 0.5
"""Seconds between two such messages, and two probes of ZeroMQ."""
SILENCE_MS = 20_000
"""ZeroMQ closes a connection over which nothing came for this long. A process that ends
closes it at once; this finds one that hangs, and a busy host may give one no turn for
seconds."""
_NEVER_MS = 2**31 - 1
"""When a lost connection would be opened again: 24 days, long after it is closed."""
OUTPUT_LIMIT = 256 * 1024
"""Bytes that are kept of the output of one task."""
GOODBYE = "goodbye"
"""Topic of who leaves; not answered."""


class Failed(LeadError):
    """What a request is answered with; `errnum` is its errno."""

    def __init__(self, errnum: int, text: str) -> None:
        super().__init__(text)
        self.errnum = errnum


class Message(msgspec.Struct, frozen=True, array_like=True):
    """A request, or without a topic a response."""

    tag: int
    """Of the request; one of tag 0 is answered only if it fails."""
    topic: str = ""
    payload: bytes = b""
    """JSON; the text of the error where `errnum` is not 0."""
    errnum: int = 0

    def encode(self) -> bytes:
        """Return it as it goes over the wire."""
        return msgspec.msgpack.encode(self)


ANSWER = b"{}"
"""The payload of a response that says nothing more."""
BEAT = Message(0)
decode = msgspec.msgpack.Decoder(prepared(Message)).decode
"""Raises msgspec.MsgspecError."""


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


Order = RunTasks | KillTasks
decode_order: Callable[[bytes], Order] = json_decoder(Order).decode  # type: ignore[arg-type]


def calling_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig | None = None
) -> zmq.Socket[bytes]:
    """Return a socket to the lead; what has come can be read when the lead is gone.

    With `boot` it is a follower's, and talks to the lead with this certificate alone.
    """
    socket = context.socket(zmq.DEALER)
    _set_common(socket, boot)
    # Not -1, nor IMMEDIATE: ZeroMQ then drops what was not read as the lead goes.
    socket.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
    socket.setsockopt(zmq.LINGER, 0)
    if boot:
        socket.setsockopt(zmq.CURVE_PUBLICKEY, boot.certificate.public)
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
    _set_common(socket, boot)
    # Those who are told that the lead stops may read it late on a busy host.
    socket.setsockopt(zmq.LINGER, 10_000)
    if boot:
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.ZAP_DOMAIN, b"burst")
    return socket


def _set_common(socket: zmq.Socket[bytes], boot: BrokerConfig | None) -> None:
    socket.setsockopt(zmq.SNDHWM, 0)
    # ZeroMQ probes connections by itself, and closes those that are silent.
    socket.setsockopt(zmq.HEARTBEAT_IVL, int(BEAT_S * 1000))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
    if boot:
        socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
        socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
