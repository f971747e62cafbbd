# SPDX-License-Identifier: MIT
"""The clients' side of the protocol: one connection, for calls and streams."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from burst.errors import ConfigError, LeadGone
from burst_embedded.process import LONGEST_PATH
from burst_embedded.wire import (
    BEAT_S,
    Response,
    calling_socket,
    decode_response,
    encode_request,
)

TIMEOUT_S = 5.0
"""After this long without an answer the lead counts as gone; it takes milliseconds."""
SCHEME = "embedded://"
_UP = zmq.EVENT_HANDSHAKE_SUCCEEDED
_DOWN = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED

Answers = SimpleQueue[Response | None]
"""The answers to one request, in order; None once the connection is lost."""


class LeadSilent(LeadGone):
    """There was no answer in time."""


class Connection:
    """A connection with a thread of its own, for any thread.

    It is not opened again once it is lost. Raises LeadGone, here and in all methods but
    `tell` and `close`; here also ConfigError.
    """

    def __init__(self, uri: str) -> None:
        path = _path(uri)
        self.leaves = False
        """Whether the lead has said that it stops."""
        self._uri = uri
        self._gone: LeadGone | None = None
        self._stopping = False
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._requests: SimpleQueue[bytes] = SimpleQueue()
        self._hearers: dict[int, Callable[[Response | None], None]] = {}
        self._wakeup, self._ear = socket.socketpair()
        self._wakeup.setblocking(False)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = calling_socket(self._context)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
        self._monitor = self._socket.get_monitor_socket(_UP | _DOWN)
        self._socket.connect(f"ipc://{path}")
        if not self._monitor.poll(_ms(TIMEOUT_S)) or self._event() != _UP:
            self._hang_up()
            raise self._lost("is not there")
        self._thread = threading.Thread(
            target=self._run, name="embedded-lead", daemon=True
        )
        self._thread.start()

    @property
    def gone(self) -> LeadGone | None:
        """Why the connection is lost; None while it is not."""
        return self._gone

    def call(
        self, kind: Any, method: str, *args: Any, timeout: float = TIMEOUT_S
    ) -> Any:
        """Return the answer as that type. Raises the error that the lead answers."""
        answers: Answers = SimpleQueue()
        number = self.open(answers.put, method, *args)
        try:
            return self.next(answers, timeout).read(kind)
        finally:
            with self._lock:
                self._hearers.pop(number, None)

    def stream(self, kind: Any, method: str, *args: Any) -> Iterator[Any]:
        """Yield what a stream brings, each as that type. Raises as `call` does."""
        answers: Answers = SimpleQueue()
        self.open(answers.put, method, *args)
        last = False
        while not last:
            answer = self.next(answers, None)
            yield answer.read(kind)
            last = answer.last

    def open(
        self, hear: Callable[[Response | None], None], method: str, *args: Any
    ) -> int:
        """Send a request; return its number.

        `hear` is called from the thread with each answer, and with None if the
        connection is lost. It must be quick.
        """
        number = next(self._numbers)
        request = encode_request(number, method, args)
        with self._lock:
            if self._gone:
                raise self._gone
            self._hearers[number] = hear
        self._requests.put(request)
        self._ring()
        return number

    def next(self, answers: Answers, timeout: float | None) -> Response:
        """Return the next of the answers, also one that tells an error."""
        try:
            answer = answers.get(timeout=timeout)
        except Empty:
            why = f"the lead did not answer within {timeout:g} s"
            raise LeadSilent(why) from None
        if answer is None:
            raise self._gone or self._lost("is gone")
        return answer

    def tell(self, method: str, *args: Any) -> None:
        """Send a request whose answer is of no interest; dropped if it is lost."""
        self._requests.put(encode_request(0, method, args))
        self._ring()

    def close(self) -> None:
        """End the thread and the connection."""
        self._stopping = True
        self._ring()
        self._thread.join()

    def _run(self) -> None:
        gone = LeadGone("the connection to the lead was closed")
        try:
            self._listen()
        except LeadGone as error:
            gone = error
        finally:
            with self._lock:
                self._gone = gone
                hearers, self._hearers = list(self._hearers.values()), {}
            for hear in hearers:
                hear(None)
            self._hang_up()

    def _listen(self) -> None:
        poller = zmq.Poller()
        for source in (self._socket, self._monitor, self._ear):
            poller.register(source, zmq.POLLIN)
        heard = 0.0
        while not self._stopping:
            ready = dict(poller.poll(_ms(BEAT_S)))
            if self._ear.fileno() in ready:
                self._ear.recv(4096)
            while not self._requests.empty():
                self._send(self._requests.get())
            while self._socket.poll(0):
                heard = time.monotonic()
                self._hear(decode_response(self._socket.recv()))
            if self._monitor in ready:
                raise self._lost("has closed the connection")
            # It begins to show that it lives with the first request.
            if heard and time.monotonic() - heard > TIMEOUT_S:
                raise LeadGone(f"the lead was silent for {TIMEOUT_S:g} s")

    def _hear(self, said: Response) -> None:
        if said.is_farewell:
            self.leaves = True
            self._send(encode_request(0, "goodbye", ()))
        with self._lock:
            hear = self._hearers.get(said.number)
            if said.last:
                self._hearers.pop(said.number, None)
        if hear:
            hear(said)

    def _send(self, request: bytes) -> None:
        try:
            self._socket.send(request, zmq.NOBLOCK)
        except zmq.Again:
            raise self._lost("has closed the connection") from None

    def _event(self) -> int:
        return int(parse_monitor_message(self._monitor.recv_multipart())["event"])

    def _lost(self, how: str) -> LeadGone:
        return LeadGone(
            f"the lead at {self._uri} {how}", "start it, or give the --uri of another"
        )

    def _ring(self) -> None:
        # It has ended, or the full socket wakes it anyway.
        with contextlib.suppress(OSError):
            self._wakeup.send(b"\0")

    def _hang_up(self) -> None:
        self._socket.disable_monitor()
        for each in (self._monitor, self._socket, self._wakeup, self._ear):
            each.close()
        self._context.term()


def _ms(seconds: float) -> int:
    return math.ceil(seconds * 1000)


def _path(uri: str) -> str:
    path = uri.removeprefix(SCHEME)
    if not uri.startswith(SCHEME) or not os.path.isabs(path):
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
