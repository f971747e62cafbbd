# SPDX-License-Identifier: MIT
"""A connection with a thread of its own, for a stream of the lead's messages."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import zmq

from burst.errors import LeadGone
from burst_embedded.calls import (
    Body,
    ClientRequest,
    ClientResponse,
    ServiceCall,
    ServiceReply,
)
from burst_embedded.client import TIMEOUT_S, ClientSocket
from burst_embedded.wire import BEAT_S, Goodbye, Leave

_NUMBER = 1


class ClientStream:
    """Opened with one call, whose first answer is `first`; the rest goes to `hear`.

    Opening raises LeadGone and what the lead says.
    """

    def __init__(self, uri: str, opening: Body) -> None:
        self.gone: LeadGone | None = None
        """Why the stream ended; None while it is open."""
        self.leaves = False
        """Whether the lead has said that it stops."""
        self._replies: SimpleQueue[ServiceReply] = SimpleQueue()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._connection = ClientSocket(uri)
        self._wakeup, self._ear = socket.socketpair()
        self._wakeup.setblocking(False)
        try:
            self._connection.send(ClientRequest(_NUMBER, opening))
            self.first = self._first_answer()
        except BaseException:
            self._hang_up()
            raise

    def start(
        self,
        hear: Callable[[ClientResponse | ServiceCall], None],
        end: Callable[[], None],
    ) -> None:
        """Begin to listen. Both are called from the thread; end once, at the end."""
        self._thread = threading.Thread(
            target=self._run, args=(hear, end), name="embedded-lead", daemon=True
        )
        self._thread.start()

    def reply(self, reply: ServiceReply) -> None:
        """Answer a ServiceCall, from any thread; dropped if the stream has ended."""
        self._replies.put(reply)
        self._ring()

    def close(self) -> None:
        """End the thread and the connection."""
        self._stopping = True
        self._ring()
        if self._thread:
            self._thread.join()
        self._hang_up()

    def _run(
        self,
        hear: Callable[[ClientResponse | ServiceCall], None],
        end: Callable[[], None],
    ) -> None:
        gone = LeadGone("the connection to the lead was closed")
        try:
            self._listen(hear)
        except LeadGone as error:
            gone = error
        finally:
            self.gone = gone
            end()

    def _listen(self, hear: Callable[[ClientResponse | ServiceCall], None]) -> None:
        poller = zmq.Poller()
        for source in (*self._connection.sources, self._ear):
            poller.register(source, zmq.POLLIN)
        heard = time.monotonic()
        while not self._stopping:
            ready = dict(poller.poll(int(BEAT_S * 1000)))
            if self._ear.fileno() in ready:
                self._ear.recv(4096)
            while not self._replies.empty():
                self._connection.send(self._replies.get())
            while said := self._connection.receive(0):
                heard = time.monotonic()
                if isinstance(said, Leave):
                    self.leaves = True
                    self._connection.send(Goodbye())
                if isinstance(said, ClientResponse | ServiceCall):
                    hear(said)
            if time.monotonic() - heard > TIMEOUT_S:
                raise LeadGone(f"the lead was silent for {TIMEOUT_S:g} s")

    def _first_answer(self) -> ClientResponse:
        while said := self._connection.receive(TIMEOUT_S):
            if isinstance(said, ClientResponse):
                if said.fault:
                    raise said.fault.error()
                return said
        raise LeadGone(f"the lead did not answer within {TIMEOUT_S:g} s")

    def _ring(self) -> None:
        # It has ended, or the full socket wakes it anyway.
        with contextlib.suppress(OSError):
            self._wakeup.send(b"\0")

    def _hang_up(self) -> None:
        self._connection.close()
        self._wakeup.close()
        self._ear.close()
