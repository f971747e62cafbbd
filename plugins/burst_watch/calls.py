# SPDX-License-Identifier: MIT
"""Asks the daemon for `burst watch` on a thread, so that no key waits for an answer."""

from __future__ import annotations

import queue
import threading
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
    """What the daemon is asked, and about what, as a person calls it."""

    method: str
    payload: Mapping[str, Any]
    about: str = ""


_STATUS = DaemonCall(*STATUS)


class DaemonCalls(threading.Thread):
    """Asks for the status every so many seconds, and at once what `post` wants.

    `tell` gets each call with its answer, or None and why there is none; it is called
    on this thread. After a failure the lead is connected to again. A worker of
    Textual's would be waited for at the end, and a call may take a minute.
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
        """Ask this next."""
        self._asked.put(call)

    def stop(self) -> None:
        """Ask nothing more; a call that goes on is not waited for."""
        self._over.set()
        self._asked.put(None)

    def run(self) -> None:
        """Ask until it is over."""
        while not self._over.is_set():
            try:
                with self._connect() as lead:
                    self._ask(lead)
            except BurstError as error:
                self._tell(_STATUS, None, str(error))
                self._over.wait(self._every)

    def _ask(self, lead: Lead) -> None:
        """Raises BurstError where the daemon does not answer."""
        while not self._over.is_set():
            # What was done is seen at once, in the status.
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
