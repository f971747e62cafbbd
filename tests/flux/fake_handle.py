# SPDX-License-Identifier: MIT
"""A handle without a broker: services are functions, streams are pushed to."""

from __future__ import annotations

import os
import queue
import select
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from burst.errors import LeadGone
from burst.flux.handle import Handle, RequestMessage, ResponseMessage


class Fault(NamedTuple):
    """What a service may answer instead of an object."""

    errnum: int
    text: str = ""


Answer = dict[str, Any] | Fault | None
"""None: no answer at all."""


class FakeHandle:
    """Answers in the order of requests, as a broker does for one module."""

    def __init__(self, services: Mapping[str, Callable[[Any], Answer]]) -> None:
        self.services = dict(services)
        self.streams: dict[str, int] = {}
        """Topic to the matchtag of the last request for a stream."""
        self.answers: list[tuple[Any, int, Any]] = []
        """What was sent in answer to requests: message, errnum, payload or text."""
        self.closed = False
        self._gone = False
        self._sent = 0
        self._arrived: queue.SimpleQueue[ResponseMessage | RequestMessage] = (
            queue.SimpleQueue()
        )
        self._poll = select.poll()
        self._readable, self._writable = os.pipe()
        self._poll.register(self._readable, select.POLLIN)

    def as_handle(self) -> Handle:
        return cast("Handle", self)

    def push(self, topic: str, payload: Any, errnum: int = 0) -> None:
        """Send a response on a stream; with an errnum, its end and the reason."""
        body = payload.encode() if errnum else msgspec.json.encode(payload)
        self.arrive(ResponseMessage(self.streams[topic], errnum, body))

    def arrive(self, message: ResponseMessage | RequestMessage) -> None:
        self._arrived.put(message)
        os.write(self._writable, b"!")

    def lose(self) -> None:
        """Have the broker be gone."""
        self._gone = True
        os.write(self._writable, b"!")

    def send(
        self, topic: str, payload: Mapping[str, Any], *, streaming: bool = False
    ) -> int:
        if self._gone:
            raise LeadGone("the connection to the broker is lost")
        self._sent += 1
        if streaming:
            self.streams[topic] = self._sent
        answer = self.services[topic](payload) if topic in self.services else None
        if isinstance(answer, Fault):
            self.arrive(
                ResponseMessage(self._sent, answer.errnum, answer.text.encode())
            )
        elif answer is not None:
            self.arrive(ResponseMessage(self._sent, 0, msgspec.json.encode(answer)))
        return self._sent

    def receive(self) -> ResponseMessage | RequestMessage | None:
        if not self._arrived.empty():
            return self._arrived.get_nowait()
        if self._gone:
            raise LeadGone("the connection to the broker is lost")
        return None

    def watch(self, fd: int) -> None:
        self._poll.register(fd, select.POLLIN)

    def wait(self, timeout_s: float) -> None:
        for fd, _ in self._poll.poll(max(0.0, timeout_s) * 1000):
            if fd == self._readable:
                os.read(fd, 4096)

    def respond(self, request: RequestMessage, payload: Mapping[str, Any]) -> None:
        self.answers.append((request.message, 0, dict(payload)))

    def refuse(self, request: RequestMessage, errnum: int, text: str) -> None:
        self.answers.append((request.message, errnum, text))

    def close(self) -> None:
        if not self.closed:
            os.close(self._readable)
            os.close(self._writable)
        self.closed = True
