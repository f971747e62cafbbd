# SPDX-License-Identifier: MIT
"""Threads that answer the service's requests, and limits on requests.

Every user of the instance may send requests. So there is a limit on unanswered requests
for each user, and one for all guests together; guests have threads of their own, on
which they take turns; requests have a maximum size; and the daemon stops without
waiting for answers. `burst.runtime.call_limits` limits how often a guest may call.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

from burst.decode import from_json
from burst.errors import MALFORMED, BurstError

MAX_PAYLOAD_BYTES = 256 * 1024
"""The largest payload of a request, in bytes; `burst release` for 10,000 jobs is
smaller."""
MAX_GUEST_REQUESTS = 8
"""The most unanswered requests of one user who is not the owner."""
MAX_ALL_GUESTS_REQUESTS = 512
"""The most unanswered requests of all users other than the owner: each takes memory
until it is answered, and one user may have many ids if `[guests] take_subuids` is set.
"""
MAX_OWNER_REQUESTS = 256
FAST_METHODS = ("intake", "ping")
"""Methods that only read what is known before the first tick. They have a thread of
their own, as `flux submit --burst` waits for `intake`."""
COMMANDS = ("down", "release", "request", "request-job")
"""Methods of guests that wait for a tick. They have threads of their own, so that
methods that only read do not wait for a tick."""

_BUSY = "wait until they are answered"
_LATER = "try again in a few seconds"
_Work = Callable[[], None]


class RequestThreads:
    """Threads for the owner, for all guests, and one for FAST_METHODS."""

    def __init__(self, name: str, each: int = 4) -> None:
        half = max(1, each // 2)
        self._prompt = _Lane(f"{name}-prompt", 1, 1)
        self._owner = _Lane(f"{name}-owner", each, each)
        self._guests = _Lane(f"{name}-guests", each, half)
        self._commands = _Lane(f"{name}-commands", each, half)
        self._lock = threading.Lock()
        self._asked: Counter[int] = Counter()
        self._all_guests = 0

    def submit(self, method: str, userid: int, owner: bool, work: _Work) -> None:
        """Have a thread do the work of a request.

        Raises BurstError if there are too many unanswered requests.
        """
        most = MAX_OWNER_REQUESTS if owner else MAX_GUEST_REQUESTS
        with self._lock:
            if self._asked[userid] >= most:
                raise BurstError(f"you have {most} requests that wait already", _BUSY)
            if not owner and self._all_guests >= MAX_ALL_GUESTS_REQUESTS:
                raise BurstError("the daemon has too many requests from users", _LATER)
            self._asked[userid] += 1
            self._all_guests += not owner
        self._lane(method, owner).put(userid, lambda: self._do(userid, owner, work))

    def close(self) -> None:
        """Begin no more work, and do not wait for work that is under way."""
        for lane in (self._prompt, self._owner, self._guests, self._commands):
            lane.close()

    def _lane(self, method: str, owner: bool) -> _Lane:
        if method in FAST_METHODS:
            return self._prompt
        if owner:
            return self._owner
        return self._commands if method in COMMANDS else self._guests

    def _do(self, userid: int, owner: bool, work: _Work) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._all_guests -= not owner
                self._asked[userid] -= 1
                if not self._asked[userid]:
                    del self._asked[userid]


class _Lane:
    """A queue of work for up to `most` threads, which are started when needed.

    Users take turns, each with their oldest work first, on up to `of_user` threads at
    a time: a user with much or long work does not keep others from a turn.
    """

    def __init__(self, name: str, most: int, of_user: int) -> None:
        self._name = name
        self._most = most
        self._of_user = of_user
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._waiting: OrderedDict[int, deque[_Work]] = OrderedDict()
        """The waiting work of each user; the user whose turn it is comes first."""
        self._working: Counter[int] = Counter()
        """The number of threads that do work of each user."""
        self._threads = 0
        self._idle = 0
        """The number of threads that wait, or are about to take the work that came."""
        self._closed = False

    def put(self, userid: int, work: _Work) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.setdefault(userid, deque()).append(work)
            # A thread that was notified of earlier work is idle until it has the lock.
            works = sum(map(len, self._waiting.values()))
            new = works > self._idle and self._threads < self._most
            self._threads += new
            self._changed.notify()
        if new:
            name = f"{self._name}-{next(self._numbers)}"
            # A daemon thread, so that the daemon can stop during a long request.
            threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            userid, work = taken
            try:
                work()
            finally:
                with self._changed:
                    self._working[userid] -= 1
                    if not self._working[userid]:
                        del self._working[userid]
                    self._changed.notify()

    def _take(self) -> tuple[int, _Work] | None:
        """Wait for work and return it; None once the lane is closed."""
        with self._changed:
            while not self._closed:
                userid = self._next_user()
                if userid is not None:
                    waiting = self._waiting.pop(userid)
                    work = waiting.popleft()
                    if waiting:
                        self._waiting[userid] = waiting
                    self._working[userid] += 1
                    return userid, work
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
        return None

    def _next_user(self) -> int | None:
        free = (u for u in self._waiting if self._working[u] < self._of_user)
        return next(free, None)


def check_length(text: bytes) -> None:
    """Raise BurstError for a payload longer than MAX_PAYLOAD_BYTES."""
    if len(text) > MAX_PAYLOAD_BYTES:
        what = (
            f"the request has {len(text)} bytes; the daemon reads {MAX_PAYLOAD_BYTES}"
        )
        raise BurstError(what, "split it into several requests")


def read_payload(text: bytes) -> dict[str, Any]:
    """Return a request's JSON object. Raises BurstError.

    An empty text is an empty object; a text that is too long is not decoded.
    """
    check_length(text)
    try:
        return from_json(text or b"{}", dict[str, Any])
    except MALFORMED as error:
        raise BurstError(f"not an object: {error}") from error
