# SPDX-License-Identifier: MIT
"""Call the daemon for `burst watch` in a thread, so that no key waits for an answer."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from burst.cli.listing import Row
from burst.errors import BurstError
from burst.lead import Lead
from burst_watch.rows import STATUS

Connect = Callable[[], AbstractContextManager[Lead]]


class DaemonCall(msgspec.Struct, frozen=True):
    """A call of a method of the daemon."""

    method: str
    payload: Mapping[str, Any]
    about: str = ""
    """The id of the burst or job that it is about; empty for the status."""


_STATUS = DaemonCall(*STATUS)


class DaemonCalls(threading.Thread):
    """Asks for the status every `every` seconds, and makes calls of `post` at once.

    `tell` is called in this thread with each call and its answer, or None and the
    reason. After a failure it connects to the lead again; until that answers, no call
    of `post` is made. It is not a worker of Textual: Textual would wait for that at the
    end, and a call may take a minute.
    """

    def __init__(
        self,
        connect: Connect,
        every: float,
        tell: Callable[[DaemonCall, Row | None, str], object],
    ) -> None:
        super().__init__(daemon=True)
        self._connect, self._every, self._tell = connect, every, tell
        self._asked: queue.SimpleQueue[DaemonCall | None] = queue.SimpleQueue()
        self._over = threading.Event()

    def post(self, call: DaemonCall) -> None:
        """Make this call next."""
        self._asked.put(call)

    def stop(self) -> None:
        """Make no more calls; do not wait for one that goes on."""
        self._over.set()
        self._asked.put(None)

    def run(self) -> None:
        """Make calls until `stop` is called."""
        while not self._over.is_set():
            try:
                with self._connect() as lead:
                    self._ask(lead)
            except BurstError as error:
                self._refuse_calls(str(error))
            except Exception as error:  # noqa: BLE001 - the thread must go on
                self._refuse_calls(f"internal error: {error!r}")

    def _refuse_calls(self, why: str) -> None:
        """Wait before the next request. No call outlives an outage: what was asked for
        may be wrong by the time that the daemon answers again.
        """
        self._tell(_STATUS, None, why)
        until = time.monotonic() + self._every
        while not self._over.is_set():
            try:
                call = self._asked.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if call is not None:
                self._tell(call, None, f"not asked: {why}")

    def _ask(self, lead: Lead) -> None:
        """Make calls until `stop` is called. Raises BurstError without an answer."""
        while not self._over.is_set():
            # Also after each call of `post`, so that its effect is shown at once.
            self._tell(_STATUS, lead.call(*STATUS), "")
            try:
                call = self._asked.get(timeout=self._every)
            except queue.Empty:
                continue
            if call is not None:
                self._answer(lead, call)

    def _answer(self, lead: Lead, call: DaemonCall) -> None:
        try:
            found = lead.call(call.method, call.payload)
        except BurstError as error:
            self._tell(call, None, str(error))
        else:
            self._tell(call, found, "")
