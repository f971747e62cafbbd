# SPDX-License-Identifier: MIT
"""The clients' side: a connection to a lead on the same host."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import zmq
from zmq.utils.monitor import parse_monitor_message

from burst.errors import ConfigError, LeadError, LeadGone
from burst_embedded import calls
from burst_embedded.calls import (
    Body,
    ClientRequest,
    ClientResponse,
    FromClient,
    ToClient,
)
from burst_embedded.process import LONGEST_PATH
from burst_embedded.wire import notice_silence

TIMEOUT_S = 5.0
"""After this long without an answer the lead counts as gone; it takes milliseconds."""
_SCHEME = "embedded://"
_UP = zmq.EVENT_HANDSHAKE_SUCCEEDED
_DOWN = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED
_T = TypeVar("_T")


class ClientSocket:
    """One connection, for one thread. It is not opened again once it is lost.

    Raises LeadGone, here and in all methods; here also ConfigError.
    """

    def __init__(self, uri: str) -> None:
        path = _path(uri)
        self._uri = uri
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IMMEDIATE, 1)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
        notice_silence(self._socket)
        self._monitor = self._socket.get_monitor_socket(_UP | _DOWN)
        self._socket.connect(f"ipc://{path}")
        if not self._monitor.poll(_ms(TIMEOUT_S)) or self._event() != _UP:
            self.close()
            raise self._gone("is not there")

    @property
    def sources(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        """Sockets to poll; when one is readable, `receive` returns something."""
        return self._socket, self._monitor

    def send(self, message: FromClient) -> None:
        """Send, without waiting."""
        try:
            self._socket.send(msgspec.msgpack.encode(message), zmq.NOBLOCK)
        except zmq.Again:
            raise self._gone("has closed the connection") from None

    def receive(self, timeout: float) -> ToClient | None:
        """Return the lead's next message, None if none comes in these seconds."""
        poller = zmq.Poller()
        for source in self.sources:
            poller.register(source, zmq.POLLIN)
        ready = dict(poller.poll(_ms(timeout)))
        if self._socket in ready:
            return calls.decode_to_client(self._socket.recv())
        if self._monitor in ready:
            raise self._gone("has closed the connection")
        return None

    def close(self) -> None:
        """Close, whatever the state."""
        if not self._socket.closed:
            self._socket.disable_monitor()
            self._monitor.close()
            self._socket.close()
            self._context.term()

    def _event(self) -> int:
        return int(parse_monitor_message(self._monitor.recv_multipart())["event"])

    def _gone(self, how: str) -> LeadGone:
        return LeadGone(
            f"the lead at {self._uri} {how}", "start it, or give the --uri of another"
        )


class EmbeddedClient:
    """Calls to a lead, one after the other. For one thread."""

    def __init__(self, uri: str) -> None:
        self._connection = ClientSocket(uri)
        self._numbers = itertools.count(1)

    def call(self, body: Body, kind: type[_T], timeout: float = TIMEOUT_S) -> _T:
        """Return the answer. Raises LeadGone, and the error that the lead answers."""
        answer = next(self._answers(body, timeout))
        return msgspec.convert(answer.payload, kind)

    def stream(self, body: Body) -> Iterator[Any]:
        """Yield what a stream brings, the last answer too. Raises as `call` does.

        Heartbeats of the lead show that it is alive while nothing happens.
        """
        for answer in self._answers(body, TIMEOUT_S):
            yield answer.payload

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _answers(self, body: Body, timeout: float) -> Iterator[ClientResponse]:
        number = next(self._numbers)
        self._connection.send(ClientRequest(number, body))
        while True:
            said = self._connection.receive(timeout)
            if said is None:
                raise _silence(body, timeout)
            if not isinstance(said, ClientResponse) or said.number != number:
                continue
            if said.fault:
                raise said.fault.error()
            yield said
            if said.last:
                return


def _silence(body: Body, timeout: float) -> LeadError:
    """Return the error for a call that got no answer in time."""
    if isinstance(body, calls.RequestService):
        return LeadError(
            f"the daemon did not answer {body.method!r} within {timeout:g} s",
            "its log may say why",
        )
    return LeadGone(f"the lead did not answer within {timeout:g} s")


def _ms(seconds: float) -> int:
    return math.ceil(seconds * 1000)


def _path(uri: str) -> str:
    path = uri.removeprefix(_SCHEME)
    if not uri.startswith(_SCHEME) or not os.path.isabs(path):
        raise ConfigError(
            f"not the URI of an embedded lead: {uri!r}",
            "it is embedded:// and the path of the socket `control` in its --rundir",
        )
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ConfigError(
            f"{path}: is longer than the {LONGEST_PATH} bytes that a Unix socket's"
            " path may have",
            "start the lead with a shorter --rundir",
        )
    return path
