# SPDX-License-Identifier: MIT
"""The lead's side of the protocol: who may connect, requests, and streams.

Clients use a socket in a directory that only the instance owner can enter. Followers
use TCP, where only the shared CURVE certificate may connect. Both may call all methods:
as in Flux, the certificate gives the owner's rights.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec
import zmq
from zmq.utils import z85

from burst.decode import json_decoder
from burst.errors import BurstError, LeadError
from burst.log import failure, say
from burst_embedded.boot import BrokerConfig
from burst_embedded.wire import (
    ANSWER,
    BEAT,
    GOODBYE,
    Failed,
    Message,
    decode,
    serving_socket,
)

_ZAP = "inproc://zeromq.zap.01"
_KEYS = {"job": "id", "kind": "type"}
"""Parameters of methods whose key in requests has another name, a built-in of Python's.
"""


class Peer(NamedTuple):
    """A connected client or follower."""

    socket: zmq.Socket[bytes]
    identity: bytes


class Caller(NamedTuple):
    """The sender of a request, and its matchtag."""

    peer: Peer
    tag: int


class _Stream(NamedTuple):
    topic: str
    subject: Any
    ended: Callable[[str], object]


def _do_nothing(_how: str) -> None:
    """Do nothing: the end of most streams needs no action."""


class _Method:
    """A function that is called with the values of a request's keys.

    A function with a parameter `caller` answers by `Server.send`, now or later. The
    return value of any other is the answer.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        hints: dict[str, Any] = get_type_hints(function)
        hints.pop("return", None)
        self.answers_itself = hints.pop("caller", None) is not None
        fields = list(hints.items())
        payload = msgspec.defstruct("Payload", fields, rename=_KEYS)
        self._decode = json_decoder(payload).decode
        self._function = function

    def call(self, payload: bytes, caller: Caller) -> Any:
        """Call the function. Raises Failed if the payload does not fit it."""
        try:
            found = msgspec.structs.asdict(self._decode(payload))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Failed(errno.EPROTO, str(error)) from error
        if self.answers_itself:
            found["caller"] = caller
        return self._function(**found)


class Server:
    """Serves all connections. Call `receive` when a socket is readable.

    While it exists, no other lead can have its sockets.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        path: Path,
        boot: BrokerConfig,
    ) -> None:
        """Listen on both sockets. Raises LeadError if the port is in use."""
        self._key = boot.certificate.public
        self._push: Callable[[], None] = lambda: None
        self._methods: dict[str, _Method] = {}
        self._peers: set[Peer] = set()
        self._streams: dict[Caller, _Stream] = {}
        self._services: dict[str, Peer] = {}
        self._asked: dict[int, tuple[Caller, Peer]] = {}
        """Requests to services, by our tag: the caller, and the peer that answers."""
        self._tags = itertools.count(1)
        self._unreachable: set[Peer] = set()
        self._zap = context.socket(zmq.ROUTER)
        self._zap.bind(_ZAP)
        self._remote = serving_socket(context, boot)
        self._local = serving_socket(context)
        _bind(self._remote, boot)
        self._local.bind(f"ipc://{path}")

    def answer_by(
        self, functions: Mapping[str, Callable[..., Any]], push: Callable[[], None]
    ) -> None:
        """Set the functions to call, by topic. Call this before `receive`.

        A request with another topic goes to the client that registered the service by
        `service.add`. `push` is called before each answer, to send earlier changes.
        """
        self._push = push
        functions = {**functions, "service.add": self._add_service}
        self._methods = {topic: _Method(each) for topic, each in functions.items()}

    @property
    def sockets(self) -> tuple[zmq.Socket[bytes], ...]:
        """Sockets to poll."""
        return self._local, self._remote, self._zap

    def receive(self) -> None:
        """Carry out the requests that have arrived."""
        self._admit()
        for socket in (self._local, self._remote):
            while socket.poll(0):
                identity, *_, frame = socket.recv_multipart()
                self._hear(Peer(socket, identity), frame)
        # After the requests: a peer that cannot be reached may have sent a goodbye.
        while self._unreachable:
            self._forget(self._unreachable.pop(), "is lost: its connection is closed")

    def send(self, caller: Caller, payload: Any = None) -> None:
        """Answer a request, or send the next part of a stream."""
        text = ANSWER if payload is None else msgspec.json.encode(payload)
        self._send(caller.peer, Message(caller.tag, "", text))

    def open(
        self,
        caller: Caller,
        topic: str,
        subject: Any = None,
        ended: Callable[[str], object] = _do_nothing,
    ) -> None:
        """Register a stream to the caller.

        If the caller disconnects before `fail` ends the stream, `ended` is called with
        words for how that happened.
        """
        self._streams[caller] = _Stream(topic, subject, ended)

    def streams(self, topic: str) -> list[tuple[Caller, Any]]:
        """Return the callers with a stream of that topic, and the subject of each."""
        found = self._streams.items()
        return [(each, it.subject) for each, it in found if it.topic == topic]

    def fail(self, caller: Caller, error: BurstError | None = None) -> None:
        """Answer with an error, which ends a stream; without one, end the stream."""
        self._streams.pop(caller, None)
        number, text = errno.ENODATA, ""
        if error:
            number, text = getattr(error, "errnum", errno.EINVAL), str(error)
        self._send(caller.peer, Message(caller.tag, "", text.encode(), number))

    def beat(self) -> None:
        """Send a message to all peers, to find those that are gone."""
        for peer in self._peers:
            self._send(peer, BEAT)

    def close(self) -> None:
        """Close the sockets."""
        for socket in self.sockets:
            socket.close()

    def _hear(self, peer: Peer, frame: bytes) -> None:
        self._peers.add(peer)
        try:
            said = decode(frame)
        except (msgspec.MsgspecError, RecursionError) as error:
            say("a client sent a message that cannot be decoded: %s", error)
            self.fail(Caller(peer, 0), LeadError("the message cannot be decoded"))
            return
        caller = Caller(peer, said.tag)
        if said.topic == GOODBYE:
            self._forget(peer, "left")
        elif not said.topic:
            self._pass_answer(peer, said)
        elif said.topic in self._methods:
            self._call(caller, said)
        else:
            self._ask_service(caller, said)

    def _call(self, caller: Caller, said: Message) -> None:
        method = self._methods[said.topic]
        try:
            answer = method.call(said.payload, caller)
            self._push()
        except BurstError as error:
            self.fail(caller, error)
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            failure("answering %s", said.topic)
            what = f"internal error: {error!r}"
            self.fail(caller, LeadError(what, "see the lead's log"))
        else:
            if caller.tag and not method.answers_itself:
                self.send(caller, answer)

    def _add_service(self, service: str, caller: Caller) -> None:
        """Pass requests to a service on to this client from now on."""
        holder = self._services.get(service)
        # The process that served it may have ended meanwhile.
        if holder and self._send(holder, BEAT):
            raise Failed(errno.EEXIST, f"{service} is served already")
        self._services[service] = caller.peer
        self.send(caller)

    def _ask_service(self, caller: Caller, said: Message) -> None:
        holder = self._services.get(said.topic.partition(".")[0])
        tag = next(self._tags)
        request = Message(tag, said.topic, said.payload)
        if holder and self._send(holder, request):
            self._asked[tag] = caller, holder
        else:
            self.fail(caller, _no_service(said.topic))

    def _pass_answer(self, peer: Peer, said: Message) -> None:
        caller, asked = self._asked.pop(said.tag, (None, None))
        if caller and asked == peer:
            answer = msgspec.structs.replace(said, tag=caller.tag)
            self._send(caller.peer, answer)

    def _send(self, peer: Peer, message: Message) -> bool:
        """Send a message; return False, and remember the peer, if it is gone."""
        try:
            peer.socket.send_multipart([peer.identity, message.encode()], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._unreachable.add(peer)
            return False
        return True

    def _forget(self, peer: Peer, how: str) -> None:
        self._peers.discard(peer)
        for name in [name for name, each in self._services.items() if each == peer]:
            del self._services[name]
        for tag in [tag for tag, (_, each) in self._asked.items() if each == peer]:
            self.fail(self._asked.pop(tag)[0], _no_service("its daemon has ended"))
        for caller in [each for each in self._streams if each.peer == peer]:
            self._streams.pop(caller).ended(how)

    def _admit(self) -> None:
        """Tell ZeroMQ which keys may connect (ZAP, ZeroMQ RFC 27)."""
        while self._zap.poll(0):
            frames = self._zap.recv_multipart()
            *envelope, version, request, _, address, _, mechanism = frames[:8]
            known = mechanism == b"CURVE" and z85.encode(frames[8]) == self._key
            if not known:
                say("refused %s: its key is not the certificate's", address.decode())
            answer = [b"200", b"OK"] if known else [b"400", b"not the certificate's"]
            self._zap.send_multipart([*envelope, version, request, *answer, b"", b""])


def _no_service(what: str) -> Failed:
    return Failed(errno.ENOSYS, f"{what}: no service provides it")


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
            "choose another port or address in [bootstrap], or end the process that"
            " uses this one (`ss -ltnp` lists it)",
        ) from error
