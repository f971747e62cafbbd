# SPDX-License-Identifier: MIT
"""Messages between a lead and its followers, and their sockets.

A follower sends Hello until it is answered by Welcome or Leave. From then on both send
Heartbeat twice a second, and the lead sends orders. A broker that has not joined gets
Leave, so a follower that was cut off learns of it as soon as it can connect again.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import zmq

from burst_embedded.boot import BrokerConfig

PROTOCOL = "1.0.0"
"""Version of the protocol; MAJOR.MINOR of both sides must be the same."""
BEAT_S = 0.5
"""Seconds between two heartbeats."""
SILENCE_MS = 5000
"""ZeroMQ closes a connection over which nothing came for this long. A process that ends
closes it at once; this finds one that hangs, and a busy host may give one no turn for
seconds."""
GOODBYE_S = 1.0
"""A lead that stops waits so long for the Goodbye of those that it has told."""
OUTPUT_LIMIT = 256 * 1024
"""Bytes that are kept of the output of one job, and sent of that of one task."""


class _Message(msgspec.Struct, frozen=True, tag=True):
    """Base of all messages; the tag is the name of the class."""


class Hello(_Message, frozen=True):
    """A follower wants to join."""

    version: str
    hostname: str
    rank: int
    pid: int


class Welcome(_Message, frozen=True):
    """It has joined."""


class Leave(_Message, frozen=True):
    """It has not joined, or is no member any more; `stopping` if the lead stops."""

    why: str
    stopping: bool = False


class Heartbeat(_Message, frozen=True):
    """Shows that the sender is alive."""


class Goodbye(_Message, frozen=True):
    """A follower leaves, or whoever was told that the lead stops has read it."""


class RunTasks(_Message, frozen=True):
    """Start the processes of a job that belong to this rank."""

    job: int
    tasks: tuple[int, ...]
    """Task ranks, one process each."""
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


class KillTasks(_Message, frozen=True):
    """End the tasks of a job: SIGTERM at once, SIGKILL after a grace time."""

    job: int


class Output(_Message, frozen=True):
    """A piece of what a task wrote; stream is 1 or 2."""

    job: int
    task: int
    stream: int
    data: bytes


class Ended(_Message, frozen=True):
    """A task is over; status as wait(2) has it."""

    job: int
    task: int
    status: int


Message = (
    Hello
    | Welcome
    | Leave
    | Heartbeat
    | Goodbye
    | RunTasks
    | KillTasks
    | Output
    | Ended
)
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """Return the message as it goes over the wire."""
    return msgspec.msgpack.encode(message)


def decode(frame: bytes) -> Message:
    """Return the message in a frame. Raises msgspec.MsgspecError."""
    return _DECODER.decode(frame)


def follower_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig
) -> zmq.Socket[bytes]:
    """Return a socket that talks to the lead only, both sides with one certificate.

    Nothing is queued on it while it is not connected.
    """
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
    socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, boot.certificate.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
    socket.setsockopt(zmq.CURVE_SERVERKEY, boot.certificate.public)
    notice_silence(socket)
    return socket


def lead_socket(
    context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig
) -> zmq.Socket[bytes]:
    """Return a socket for followers; about each key that connects it asks ZAP."""
    socket = serving_socket(context)
    socket.setsockopt(zmq.IPV6, boot.bootstrap.enable_ipv6)
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, boot.certificate.secret)
    socket.setsockopt(zmq.ZAP_DOMAIN, b"burst")
    return socket


def serving_socket(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    """Return a socket for many; sending to one that is gone raises EHOSTUNREACH."""
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.LINGER, 1000)
    notice_silence(socket)
    return socket


def notice_silence(socket: zmq.Socket[bytes]) -> None:
    """Have ZeroMQ close connections that are silent; it probes them by itself."""
    socket.setsockopt(zmq.HEARTBEAT_IVL, int(BEAT_S * 1000))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
