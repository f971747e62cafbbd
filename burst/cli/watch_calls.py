# SPDX-License-Identifier: MIT
"""Asks the daemon for `burst watch` on a thread, so that no key waits for an answer."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from burst.cli.listing import Row
from burst.cli.watch_state import JOBS, WatchCall
from burst.errors import BurstError
from burst.lead import Lead

_CALL_S = 60.0
STATUS = WatchCall("status", {"jobs": JOBS}, "")
"""How it all is."""


class WatchAnswer(msgspec.Struct, frozen=True):
    """What a call came to: an answer, or why there is none."""

    call: WatchCall
    found: Row | None = None
    failure: str = ""


class WatchCalls:
    """Asks how it is every so many seconds, and at once what a person wants to know.

    The lead is connected to on the thread, and again after each failure. Call `start`
    once, then `take` as often as wanted, then `stop`.
    """

    def __init__(
        self, connect: Callable[[], AbstractContextManager[Lead]], every: float
    ) -> None:
        self._connect = connect
        self._every = every
        self._asked: queue.SimpleQueue[WatchCall | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[WatchAnswer] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to ask."""
        self._thread.start()

    def post(self, call: WatchCall) -> None:
        """Ask this next."""
        self._asked.put(call)

    def take(self) -> list[WatchAnswer]:
        """Return all answers since the last call, without waiting."""
        found = []
        while not self._answers.empty():
            found.append(self._answers.get())
        return found

    def stop(self, seconds: float = 1.0) -> None:
        """Ask nothing more. A call that has not returned by then is left alone."""
        self._over.set()
        self._asked.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with self._connect() as lead:
                    self._ask(lead)
            except BurstError as error:
                self._answers.put(WatchAnswer(STATUS, failure=str(error)))
                self._over.wait(self._every)

    def _ask(self, lead: Lead) -> None:
        """Ask until it is over. Raises BurstError where the daemon does not answer."""
        due = time.monotonic()
        while not self._over.is_set():
            call = self._next(due - time.monotonic())
            if call is not None:
                self._answers.put(_carried_out(lead, call))
            # What was done is seen at once.
            found = lead.call(STATUS.method, STATUS.payload)
            self._answers.put(WatchAnswer(STATUS, found))
            due = time.monotonic() + self._every

    def _next(self, seconds: float) -> WatchCall | None:
        """Return what a person wants; None after that time, and at the end."""
        try:
            return self._asked.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None


def _carried_out(lead: Lead, call: WatchCall) -> WatchAnswer:
    try:
        return WatchAnswer(call, lead.call(call.method, call.payload, timeout=_CALL_S))
    except BurstError as error:
        return WatchAnswer(call, failure=str(error))
