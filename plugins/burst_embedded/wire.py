# SPDX-License-Identifier: MIT
"""The protocol of the lead, and sockets for both of its sides.

It is the part of Flux's protocol that a lead for bursts needs: requests have a topic
and a JSON object, responses the request's matchtag and an errno; ENODATA ends a stream.
So `burst.flux` is the client. Messages are frames of ZeroMQ, over a Unix socket for
clients on the same host, and over TCP with CURVE for followers. ZeroMQ closes the
connection of a peer that is gone or hangs. To find closed ones, the lead regularly
sends all peers a message with tag 0 and without a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import zmq

from burst.decode import json_decoder, prepared
from burst.errors import LeadError
from burst_embedded.boot import BrokerConfig

PROTOCOL = "3.2.0"
"""Version of the protocol; MAJOR.MINOR of both sides must be the same."""
BEAT_S = 0.5
"""Seconds between two of these messages, and between two probes of ZeroMQ."""
SILENCE_MS = 20_000
"""Milliseconds of silence after which ZeroMQ closes a connection. A process that ends
closes it at once; this finds a process that hangs. It is long, because on a busy host a
process may not run for seconds."""
_NEVER_MS = 2**31 - 1
"""Milliseconds until a lost connection is opened again: 24 days, so in effect never."""
OUTPUT_LIMIT = 256 * 1024
"""How many bytes of the output of one task are kept."""
GOODBYE = "goodbye"
"""Topic of the message of a peer that leaves; it is not answered."""


def is_same_protocol(version: str) -> bool:
    """Tell whether the other side, with this version, understands ours."""
    return version.split(".")[:2] == PROTOCOL.split(".")[:2]


class Failed(LeadError):
    """An error that is the answer to a request; `errnum` is its errno."""

    def __init__(self, errnum: int, text: str) -> None:
        super().__init__(text)
        self.errnum = errnum


class Message(msgspec.Struct, frozen=True, array_like=True):
    """A request, or a response if it has no topic."""

    tag: int
    """The matchtag of the request; a request with tag 0 is answered only if it fails.
    """
    topic: str = ""
    payload: bytes = b""
    """JSON; the text of the error if `errnum` is not 0."""
    errnum: int = 0

    def encode(self) -> bytes:
        """Return the message as bytes for the wire."""
        return msgspec.msgpack.encode(self)


ANSWER = b"{}"
"""The payload of a response without data."""
BEAT = Message(0)
decode = msgspec.msgpack.Decoder(prepared(Message)).decode
"""Returns the message in the bytes from the wire. Raises msgspec.MsgspecError."""


class _Tagged(msgspec.Struct, frozen=True, tag=True):
    """Base of messages between lead and followers; the tag is the class's name."""


class RunTasks(_Tagged, frozen=True):
    """To a follower: start the processes of a job that belong to this rank."""

    job: int
    tasks: tuple[int, ...]
    """The task ranks on this rank; each is one process."""
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


class KillTasks(_Tagged, frozen=True):
    """To a follower: end a job's tasks by SIGTERM, then SIGKILL after a grace time."""

    job: int


class Output(_Tagged, frozen=True):
    """A piece of a task's output; `stream` is 1 or 2."""

    job: int
    task: int
    stream: int
    data: bytes


class Ended(_Tagged, frozen=True):
    """The end of a task; `status` is as in wait(2)."""

    job: int
    task: int
    status: int


Order = RunTasks | KillTasks
decode_order: Callable[[bytes], Order] = json_decoder(Order).decode  # type: ignore[arg-type]


def calling_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig | None = None
) -> zmq.Socket[bytes]:
    """Return a socket to the lead. Messages that came can be read after it is gone.

    With `boot` it is a follower's, and accepts only a lead with the same certificate.
    """
    socket = context.socket(zmq.DEALER)
    _set_common(socket, boot)
    # Not -1, and not IMMEDIATE: with these ZeroMQ drops unread messages of a lead that
    # goes.
    socket.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
    socket.setsockopt(zmq.LINGER, 0)
    if boot:
        socket.setsockopt(zmq.CURVE_PUBLICKEY, boot.certificate.public)
        socket.setsockopt(zmq.CURVE_SERVERKEY, boot.certificate.public)
    return socket


def serving_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig | None = None
) -> zmq.Socket[bytes]:
    """Return a socket of the lead. Sending to a peer that is gone raises EHOSTUNREACH.

    With `boot` it is for followers, and asks ZAP about each key that connects.
    """
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    _set_common(socket, boot)
    # On a busy host, peers may read late that the lead stops.
    socket.setsockopt(zmq.LINGER, 10_000)
    if boot:
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.ZAP_DOMAIN, b"burst")
    return socket


def _set_common(socket: zmq.Socket[bytes], boot: BrokerConfig | None) -> None:
    # Without limits: ZeroMQ does not read the probes behind messages for which it has
    # no room, and would disconnect a client that reads nothing for minutes.
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    # ZeroMQ itself probes connections, and closes those that are silent.
    socket.setsockopt(zmq.HEARTBEAT_IVL, int(BEAT_S * 1000))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
    if boot:
        socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
        socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
