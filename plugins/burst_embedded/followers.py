# SPDX-License-Identifier: MIT
"""The lead's side of the followers' socket: who may connect, who has joined.

Two checks. CURVE, with the certificate as the allow list, decides who may connect; then
Hello is checked as Flux checks it: version, rank, and that the lead's list of hosts has
that host at that rank.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec
import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from burst.errors import LeadError
from burst.log import say
from burst_embedded.boot import BrokerConfig
from burst_embedded.wire import (
    GOODBYE_S,
    PROTOCOL,
    Goodbye,
    Heartbeat,
    Hello,
    Leave,
    Message,
    Welcome,
    decode,
    encode,
    lead_socket,
)

_ZAP = "inproc://zeromq.zap.01"
_REPEAT_S = 60.0
"""Connections without our certificate are logged at most this often."""


class Joined(msgspec.Struct, frozen=True):
    """A rank is online."""


class Lost(msgspec.Struct, frozen=True):
    """A rank is offline."""


class FollowerConnections:
    """The followers that have joined.

    `receive` is to be called when one of `sockets` is readable.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], boot: BrokerConfig
    ) -> None:
        self._boot = boot
        self._ranks: dict[bytes, int] = {}
        self._lost: deque[int] = deque()
        self._unreachable: deque[bytes] = deque()
        self._strangers_said = 0.0
        self._zap = context.socket(zmq.ROUTER)
        self._zap.bind(_ZAP)
        self._socket = lead_socket(context, boot)
        self._monitor = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        )
        _bind(self._socket, boot)

    @property
    def sockets(self) -> Sequence[zmq.Socket[bytes]]:
        """Sockets to poll."""
        return (self._socket, self._zap, self._monitor)

    def receive(self) -> Iterator[tuple[int, Message | Joined | Lost]]:
        """Yield by rank the messages, and who joined and who was lost."""
        self._admit()
        self._note_strangers()
        while self._socket.poll(0):
            identity, *_, frame = self._socket.recv_multipart()
            try:
                message = decode(frame)
            except msgspec.MsgspecError:
                self._tell(identity, Leave("it cannot be understood"))
                continue
            yield from self._hear(identity, message)
        # After the messages: a follower that cannot be reached may have sent Goodbye.
        while self._unreachable:
            identity = self._unreachable.popleft()
            if identity in self._ranks:
                self._drop(identity, "is lost: its connection is closed")
        while self._lost:
            yield self._lost.popleft(), Lost()

    def send(self, rank: int, message: Message) -> None:
        """Send to a follower; if it is gone, `receive` yields Lost."""
        for identity, member in list(self._ranks.items()):
            if member == rank and not self._tell(identity, message):
                self._unreachable.append(identity)

    def beat(self) -> None:
        """Send heartbeats; one to a follower that is gone fails and finds it lost."""
        for rank in list(self._ranks.values()):
            self.send(rank, Heartbeat())

    def close(self) -> None:
        """Send Leave to all, wait a short time for each Goodbye, and close."""
        for identity in self._ranks:
            self._tell(identity, Leave("the lead is stopping", stopping=True))
        # ZeroMQ drops what a peer has not read yet when the connection ends.
        deadline = time.monotonic() + GOODBYE_S
        while self._ranks and time.monotonic() < deadline:
            self._socket.poll(100)
            for _ in self.receive():
                continue
        self._socket.disable_monitor()
        for socket in self.sockets:
            socket.close()

    def _hear(
        self, identity: bytes, message: Message
    ) -> Iterator[tuple[int, Message | Joined | Lost]]:
        rank = self._ranks.get(identity)
        if isinstance(message, Hello):
            if rank is None:
                yield from self._join(identity, message)
        elif rank is None:
            if not isinstance(message, Goodbye):
                self._tell(identity, Leave("the lead has lost it; start it again"))
        elif isinstance(message, Goodbye):
            self._drop(identity, "left")
        elif not isinstance(message, Heartbeat):
            yield rank, message

    def _join(
        self, identity: bytes, hello: Hello
    ) -> Iterator[tuple[int, Joined | Lost]]:
        refusal = _refusal(hello, self._boot)
        if refusal:
            say("rejecting %s (rank %d): %s", hello.hostname, hello.rank, refusal)
            self._tell(identity, Leave(refusal))
            return
        for other, rank in list(self._ranks.items()):
            if rank == hello.rank:
                self._tell(other, Leave("another broker joined as this rank"))
                self._drop(other, "is lost: another broker joined as this rank")
        # The jobs on the old broker must have failed before new ones start on its rank.
        while self._lost:
            yield self._lost.popleft(), Lost()
        self._ranks[identity] = hello.rank
        self._tell(identity, Welcome())
        say("%s (rank %d) joined, pid %d", hello.hostname, hello.rank, hello.pid)
        yield hello.rank, Joined()

    def _drop(self, identity: bytes, how: str) -> None:
        rank = self._ranks.pop(identity)
        say("%s (rank %d) %s", self._boot.hosts[rank].host, rank, how)
        self._lost.append(rank)

    def _tell(self, identity: bytes, message: Message) -> bool:
        try:
            self._socket.send_multipart([identity, encode(message)], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            return False
        return True

    def _admit(self) -> None:
        """Tell ZeroMQ which keys may connect (ZAP, ZeroMQ RFC 27)."""
        while self._zap.poll(0):
            frames = self._zap.recv_multipart()
            *envelope, version, request, _, address, _, mechanism = frames[:8]
            allowed = self._boot.certificate.public
            known = mechanism == b"CURVE" and z85.encode(frames[8]) == allowed
            if not known:
                say("refused %s: its key is not the certificate's", address.decode())
            answer = [b"200", b"OK"] if known else [b"400", b"not the certificate's"]
            self._zap.send_multipart([*envelope, version, request, *answer, b"", b""])

    def _note_strangers(self) -> None:
        """Log connections that failed before there was a key to ask about."""
        while self._monitor.poll(0):
            parse_monitor_message(self._monitor.recv_multipart())
            now = time.monotonic()
            if now - self._strangers_said > _REPEAT_S or not self._strangers_said:
                self._strangers_said = now
                say(
                    "refused a connection: the other side has another certificate, or"
                    " none (said once a minute)",
                    level=logging.WARNING,
                )


def _refusal(hello: Hello, boot: BrokerConfig) -> str:
    """Return why that broker may not join, empty if it may."""
    theirs, ours = hello.version.split(".")[:2], PROTOCOL.split(".")[:2]
    if theirs != ours:
        return f"client ({hello.version}) version mismatched with server ({PROTOCOL})"
    if hello.rank == boot.rank:
        return "this rank is the lead's own"
    known = 0 <= hello.rank < len(boot.hosts)
    expected = boot.hosts[hello.rank].host if known else "nothing"
    if hello.hostname != expected:
        return (
            f"{expected} is configured as rank {hello.rank}: mismatched config? Hosts"
            " must be in the lead's order"
        )
    return ""


def _bind(socket: zmq.Socket[bytes], boot: BrokerConfig) -> None:
    endpoint = boot.hosts[boot.rank].bind
    if not endpoint:
        raise LeadError(
            f"{boot.hostname} has no bind address, so nothing could join",
            "set default_bind in [bootstrap], such as tcp://*:%p with default_port",
        )
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise LeadError(
            f"cannot listen on {endpoint}: {error.strerror}",
            "choose another port or address in [bootstrap], or end what has this one"
            " (`ss -ltnp` lists it)",
        ) from error
