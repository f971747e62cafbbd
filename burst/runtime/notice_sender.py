# SPDX-License-Identifier: MIT
"""Tells notices to a program or by a post, on a thread of its own, with retries.

The retries are made here, as no library of retries does what is needed: a failure is
told, and the notice is tried again for as long as its condition lasts, over hours and a
reload.
"""

from __future__ import annotations

import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from burst.errors import BurstError, ProviderError
from burst.kits.program import run
from burst.model.backoff import backoff
from burst.runtime.timed_post import post

# Attempts, with pauses of 1, 2 and 4 seconds between; then the notice is given back.
_ATTEMPTS = 4
_FIRST_PAUSE = 1.0


class NoticeSink(Protocol):
    """A program or a URL that is told notices."""

    def send(self, body: bytes) -> None:
        """Tell one notice, as JSON. Raises BurstError, whose text has no secret."""
        ...


class CommandSink(NamedTuple):
    """A program that reads a notice from its standard input."""

    command: tuple[str, ...]
    timeout: float

    def send(self, body: bytes) -> None:
        """See `NoticeSink`."""
        try:
            run(self.command, limit=self.timeout, given=body.decode())
        except ProviderError as error:
            raise BurstError(f"notify.command: {error.what}") from error


class WebhookSink(NamedTuple):
    """A URL to which a notice is posted."""

    url: str
    token: str
    timeout: float

    def send(self, body: bytes) -> None:
        """See `NoticeSink`. Errors name only the URL's host: the rest may be secret."""
        headers = {"Content-Type": "application/json", "User-Agent": "burst"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        # The settings allow http and https only.
        request = urllib.request.Request(  # noqa: S310
            self.url, data=body, headers=headers, method="POST"
        )
        try:
            post(request, self.timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise self._failed(f"status {error.code}") from None
        except urllib.error.URLError as error:
            raise self._failed(str(error.reason)) from None
        except TimeoutError:
            raise self._failed("timed out") from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._failed(type(error).__name__) from None

    def _failed(self, why: str) -> BurstError:
        return BurstError(f"notify.webhook: {urlsplit(self.url).hostname}: {why}")


class SentNotice(NamedTuple):
    """How telling a notice ended."""

    name: str
    why: str
    """Why it could not be told; empty if it was."""


class NoticeSender:
    """Runs a thread for one sink. Call the methods from one other thread."""

    def __init__(
        self,
        sink: NoticeSink,
        wake: Callable[[], None],
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self.sink = sink
        self._wake = wake
        self._first_pause = first_pause
        self.pending: set[str] = set()
        """Ids of notices that are on their way."""
        self._bodies: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[SentNotice] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
        self._thread.start()

    def send(self, name: str, body: bytes) -> None:
        """Have a notice told; `collect` returns how that ended."""
        self.pending.add(name)
        self._bodies.put((name, body))

    def collect(self) -> list[SentNotice]:
        """Return the notices that were told or failed since the last call."""
        ended = []
        while not self._ended.empty():
            one = self._ended.get()
            self.pending.discard(one.name)
            ended.append(one)
        return ended

    def close(self, seconds: float = 0.0) -> None:
        """Take no more; wait `seconds` for notices on their way, without retries."""
        self._closing.set()
        self._bodies.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (item := self._bodies.get()) is not None:
            name, body = item
            self._ended.put(SentNotice(name, self._try(body)))
            self._wake()

    def _try(self, body: bytes) -> str:
        """Return why a notice could not be told, empty once it was."""
        why = ""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.sink.send(body)
            except BurstError as error:
                why = str(error)
            except Exception as error:  # noqa: BLE001 - the thread must go on
                why = f"notify: {type(error).__name__}"
            else:
                return ""
            if attempt == _ATTEMPTS or self._closing.wait(
                backoff(self._first_pause, attempt)
            ):
                break
        return why
