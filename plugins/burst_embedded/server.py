# SPDX-License-Identifier: MIT
"""The lead's side of the protocol: who may connect, their requests, their streams.

Clients come over a socket in a directory that only the instance owner can enter, and
followers over TCP with the shared CURVE certificate, which alone may connect. Both may
call all methods: who has the certificate has the owner's rights, as in Flux.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec
import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from burst.decode import prepared
from burst.errors import BurstError, LeadError
from burst.log import failure, say
from burst_embedded.boot import BrokerConfig
from burst_embedded.wire import (
    GOODBYE_S,
    Fault,
    Request,
    Response,
    decode_request,
    fault_of,
    serving_socket,
)

_ZAP = "inproc://zeromq.zap.01"
_REPEAT_S = 60.0
"""Connections without our certificate are logged at most this often."""
_GIVEN = ("now", "peer", "stream")
_BEAT = Response(0, last=False)


class Peer(NamedTuple):
    """Who is connected."""

    socket: zmq.Socket[bytes]
    identity: bytes


class ClientStream(NamedTuple):
    """Who gets it, and the number of the request that opened it."""

    peer: Peer
    number: int


class _Method:
    """A function that may be called over the wire, with arguments of its types.

    Of its parameters it is given `now`, `peer` and `stream`; with `stream` it answers
    by `Server.send`, and what it returns is not sent.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        hints: Any = get_type_hints(function)
        hints.pop("return", None)
        self._given = [name for name in _GIVEN if hints.pop(name, None)]
        args: Any = tuple[tuple(hints.values())]  # type: ignore[misc]
        self._args = msgspec.msgpack.Decoder(prepared(args))
        self._function = function
        self.is_stream = "stream" in self._given

    def call(self, request: Request, stream: ClientStream) -> Any:
        """Call it. Raises LeadError where the arguments are others."""
        try:
            args = self._args.decode(request.args)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise LeadError(f"{request.method}: {error}") from error
        given = {"now": time.time(), "peer": stream.peer, "stream": stream}
        return self._function(*args, **{name: given[name] for name in self._given})


class Server:
    """All who are connected. `receive` is to be called when a socket is readable."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        path: Path,
        boot: BrokerConfig,
        functions: Iterable[Callable[..., Any]],
    ) -> None:
        self._key = boot.certificate.public
        self._methods = {each.__name__: _Method(each) for each in functions}
        self._peers: set[Peer] = set()
        self._ends: dict[ClientStream, Callable[[str], object]] = {}
        self._unreachable: set[Peer] = set()
        self._strangers_said = 0.0
        self._zap = context.socket(zmq.ROUTER)
        self._zap.bind(_ZAP)
        self._remote = serving_socket(context, boot)
        self._monitor = self._remote.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        )
        self._local = serving_socket(context)
        _bind(self._remote, boot)
        self._local.bind(f"ipc://{path}")

    @property
    def sockets(self) -> tuple[zmq.Socket[bytes], ...]:
        """Sockets to poll."""
        return self._local, self._remote, self._zap, self._monitor

    def receive(self) -> None:
        """Carry out the requests that have arrived."""
        self._admit()
        self._note_strangers()
        for socket in (self._local, self._remote):
            while socket.poll(0):
                identity, *_, frame = socket.recv_multipart()
                self._hear(Peer(socket, identity), frame)
        # After the requests: who cannot be reached may have said goodbye.
        while self._unreachable:
            self._forget(self._unreachable.pop(), "is lost: its connection is closed")

    def open(self, stream: ClientStream, ended: Callable[[str], object]) -> None:
        """Have `ended` be called with how, if the stream's peer goes before its end."""
        self._ends[stream] = ended

    def send(
        self, stream: ClientStream, payload: Any = None, *, last: bool = False
    ) -> bool:
        """Send, and end the stream if it is the last; False if its peer is gone."""
        if last:
            self._ends.pop(stream, None)
        raw = msgspec.Raw(msgspec.msgpack.encode(payload))
        return self._answer(stream, Response(stream.number, raw, last=last))

    def fail(self, stream: ClientStream, error: BurstError) -> None:
        """End the stream by an error."""
        self._ends.pop(stream, None)
        self._answer(stream, Response(stream.number, fault=fault_of(error)))

    def beat(self) -> None:
        """Tell all that the lead lives; to fail finds who is gone."""
        for peer in self._peers:
            self.reaches(peer)

    def reaches(self, peer: Peer) -> bool:
        """Return whether that peer is there."""
        return self._answer(ClientStream(peer, 0), _BEAT)

    def close(self) -> None:
        """Tell all that the lead stops, wait a short time, and close."""
        for peer in self._peers:
            self._answer(ClientStream(peer, 0), Response(0))
        # ZeroMQ drops what a peer has not read yet when the connection ends.
        deadline = time.monotonic() + GOODBYE_S
        while self._peers and time.monotonic() < deadline:
            self._local.poll(20)
            self.receive()
        self._remote.disable_monitor()
        for socket in self.sockets:
            socket.close()

    def _hear(self, peer: Peer, frame: bytes) -> None:
        self._peers.add(peer)
        try:
            request = decode_request(frame)
        except (msgspec.MsgspecError, RecursionError) as error:
            say("a client said what cannot be understood: %s", error)
            fault = Fault("lead", "it cannot be understood")
            self._answer(ClientStream(peer, 0), Response(0, fault=fault))
            return
        if request.method == "goodbye":
            self._forget(peer, "left")
            return
        answer = self._call(request, ClientStream(peer, request.number))
        if answer and (request.number or answer.fault):
            self._answer(ClientStream(peer, request.number), answer)

    def _call(self, request: Request, stream: ClientStream) -> Response | None:
        number = request.number
        if request.method not in self._methods:
            what = f"the lead has no method {request.method!r}"
            return Response(number, fault=Fault("lead", what))
        try:
            method = self._methods[request.method]
            payload = msgspec.msgpack.encode(method.call(request, stream))
        except BurstError as error:
            return Response(number, fault=fault_of(error))
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            failure("answering %s", request.method)
            what = f"internal error: {error!r}"
            return Response(number, fault=Fault("lead", what, "its log has more"))
        return None if method.is_stream else Response(number, msgspec.Raw(payload))

    def _answer(self, stream: ClientStream, response: Response) -> bool:
        """Send, or note that the peer is gone."""
        frames = [stream.peer.identity, msgspec.msgpack.encode(response)]
        try:
            stream.peer.socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._unreachable.add(stream.peer)
            return False
        return True

    def _forget(self, peer: Peer, how: str) -> None:
        self._peers.discard(peer)
        for stream in [each for each in self._ends if each.peer == peer]:
            self._ends.pop(stream)(how)

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
