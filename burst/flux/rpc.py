# SPDX-License-Identifier: MIT
"""Requests and their responses, one or thousands at a time, with a deadline."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from burst.errors import BurstError, Denied, LeadError, Unreadable
from burst.flux.connection import Connection
from burst.flux.handle import ResponseMessage

ANSWER_DEADLINE_S = 30.0
"""How long a service may take to answer: far longer than a healthy one needs with
100,000 jobs. It also detects a broker that was stopped."""

_IN_FLIGHT = 1000

Query = tuple[str, Mapping[str, Any]]
"""A topic and its payload."""


class RequestFailed(LeadError):
    """A service answered with an error; `errnum` is its errno."""

    def __init__(self, topic: str, errnum: int, text: str) -> None:
        super().__init__(f"{topic}: {text or os.strerror(errnum)}")
        self.errnum = errnum


class ServiceMissing(Unreadable):
    """No module serves that topic now: it is being loaded, or was removed."""


class RpcClient:
    """Sends requests over one handle, from one thread."""

    def __init__(self, handle: Connection) -> None:
        self._handle = handle

    def ask(
        self,
        topic: str,
        payload: Mapping[str, Any] | None = None,
        timeout_s: float = ANSWER_DEADLINE_S,
    ) -> dict[str, Any]:
        """Return the answer to one request.

        Raises Denied, ServiceMissing, RequestFailed, LeadGone, and Unreadable where
        none came in time.
        """
        return self.ask_each([(topic, payload or {})], timeout_s)[0]

    def ask_each(
        self, queries: Iterable[Query], timeout_s: float = ANSWER_DEADLINE_S
    ) -> list[dict[str, Any]]:
        """Return the answers in the order of the queries. Raises the first error."""
        found = []
        for answer in self.ask_all(queries, timeout_s):
            if isinstance(answer, BurstError):
                raise answer
            found.append(answer)
        return found

    def ask_all(
        self, queries: Iterable[Query], timeout_s: float = ANSWER_DEADLINE_S
    ) -> list[dict[str, Any] | BurstError]:
        """Return the answers in the order of the queries, failures as values.

        Raises LeadGone, and Unreadable where none came in time.
        """
        return [
            decode_response(*answer) for answer in self.exchange(queries, timeout_s)
        ]

    def exchange(
        self, queries: Iterable[Query], timeout_s: float = ANSWER_DEADLINE_S
    ) -> list[tuple[str, ResponseMessage]]:
        """Return topic and response of each query, in their order.

        All requests are sent before the first response is awaited. The timeout counts
        from the last response. Raises LeadGone,
        and Unreadable where none came in time.
        """
        rest = enumerate(queries)
        waiting: dict[int, tuple[int, str]] = {}
        answers: dict[int, tuple[str, ResponseMessage]] = {}
        while True:
            for index, (topic, payload) in islice(rest, _IN_FLIGHT - len(waiting)):
                waiting[self._handle.send(topic, payload)] = index, topic
            if not waiting:
                return [answers[index] for index in range(len(answers))]
            response = self._next(waiting, timeout_s)
            index, topic = waiting.pop(response.matchtag)
            answers[index] = topic, response

    def _next(
        self, waiting: Mapping[int, tuple[int, str]], timeout_s: float
    ) -> ResponseMessage:
        deadline = time.monotonic() + timeout_s
        while True:
            message = self._handle.receive()
            # Other matchtags are of requests whose deadline has passed.
            if isinstance(message, ResponseMessage) and message.matchtag in waiting:
                return message
            if message is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    topic = next(iter(waiting.values()))[1]
                    raise Unreadable(f"{topic}: no answer within {timeout_s:g}s")
                self._handle.wait(left)


def read_attribute(client: RpcClient, name: str) -> str:
    """Return an attribute of the broker. Raises RequestFailed where it has none."""
    return str(client.ask("attr.get", {"name": name})["value"])


def find_attribute(client: RpcClient, name: str) -> str:
    """Return an attribute of the broker; empty where it has none."""
    try:
        return read_attribute(client, name)
    except RequestFailed:
        return ""


def decode_response(
    topic: str, response: ResponseMessage
) -> dict[str, Any] | BurstError:
    """Return the object of a response, or the error to raise."""
    if response.errnum == 0:
        if not response.payload:
            return {}
        found: dict[str, Any] = msgspec.json.decode(response.payload)
        return found
    text = response.payload.decode(errors="replace")
    if response.errnum == errno.EPERM:
        return Denied(
            f"{topic}: {text or os.strerror(errno.EPERM)}",
            "only the instance owner may do that",
        )
    if response.errnum == errno.ENOSYS:
        return ServiceMissing(f"{topic}: {text or 'no module serves it'}")
    return RequestFailed(topic, response.errnum, text)
