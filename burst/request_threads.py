# SPDX-License-Identifier: MIT
"""Threads that answer the service's requests, and limits on requests.

Every user of the instance may send requests. So each has a limit on unanswered ones,
requests have a maximum size, and the daemon stops without waiting for answers.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from burst.errors import MALFORMED, BurstError

MAX_PAYLOAD_BYTES = 256 * 1024
"""Bytes of a request's payload; that of `burst release` for 10,000 jobs is smaller."""
MAX_GUEST_REQUESTS = 8
"""Unanswered requests of one user who is not the owner."""
MAX_OWNER_REQUESTS = 256
FAST_METHODS = ("intake", "ping")
"""Methods that only read. They have a thread of their own, as `flux submit --burst`
waits for `intake`."""

_BUSY = "wait until they are answered"
_Work = Callable[[], None]


class RequestThreads:
    """Threads for the owner, for all guests, and one for FAST_METHODS."""

    def __init__(self, name: str, each: int = 4) -> None:
        self._prompt = _Lane(f"{name}-prompt", 1)
        self._owner = _Lane(f"{name}-owner", each)
        self._guests = _Lane(f"{name}-guests", each)
        self._lock = threading.Lock()
        self._asked: Counter[int] = Counter()

    def submit(self, method: str, userid: int, owner: bool, work: _Work) -> None:
        """Have a thread do the work of a request.

        Raises BurstError where its caller has too many unanswered ones.
        """
        most = MAX_OWNER_REQUESTS if owner else MAX_GUEST_REQUESTS
        with self._lock:
            if self._asked[userid] >= most:
                raise BurstError(f"you have {most} requests that wait already", _BUSY)
            self._asked[userid] += 1
        lane = self._owner if owner else self._guests
        (self._prompt if method in FAST_METHODS else lane).put(
            lambda: self._do(userid, work)
        )

    def close(self) -> None:
        """Begin no more work. Work under way goes on, and is not waited for."""
        for lane in (self._prompt, self._owner, self._guests):
            lane.close()

    def _do(self, userid: int, work: _Work) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._asked[userid] -= 1
                if not self._asked[userid]:
                    del self._asked[userid]


class _Lane:
    """Work in the order it comes, on up to `most` threads, started when needed."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._threads = self._busy = 0
        self._closed = False

    def put(self, work: _Work) -> None:
        with self._lock:
            if self._closed:
                return
            self._busy += 1
            new = self._busy > self._threads and self._threads < self._most
            self._threads += new
        self._work.put(work)
        if new:
            name = f"{self._name}-{next(self._numbers)}"
            # A daemon thread, so that the daemon stops while a request takes long.
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads = self._threads
        while not self._work.empty():
            self._work.get()
        for _ in range(threads):
            self._work.put(None)

    def _run(self) -> None:
        while work := self._work.get():
            try:
                work()
            finally:
                with self._lock:
                    self._busy -= 1


def read_payload(text: bytes) -> dict[str, Any]:
    """Return a request's JSON object; no text is an empty object. Raises BurstError.

    A text longer than MAX_PAYLOAD_BYTES is not decoded.
    """
    if len(text) > MAX_PAYLOAD_BYTES:
        what = (
            f"the request has {len(text)} bytes; the daemon reads {MAX_PAYLOAD_BYTES}"
        )
        raise BurstError(what, "split it into several requests")
    try:
        return msgspec.json.decode(text or b"{}", type=dict[str, Any])
    except MALFORMED as error:
        raise BurstError(f"not an object: {error}") from error
