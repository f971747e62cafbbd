# SPDX-License-Identifier: MIT
"""Commands from other threads that wait for the engine's next tick."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from burst import log
from burst.config import Settings
from burst.core.burst_requests import keep_minimums
from burst.core.records import Records, Transaction
from burst.core.standing import minimums_at
from burst.core.tick import TickResult
from burst.errors import BurstError

EngineCommand = Callable[[Transaction], Any]
"""A request: it changes the records, and returns the answer to its caller."""


class EngineCommands:
    """The commands that wait. `post` may be called from any thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[EngineCommand, Future[Any]]]
        self._waiting = queue.SimpleQueue()
        self._posting = threading.Lock()
        self._closed = False

    def __bool__(self) -> bool:
        return not self._waiting.empty()

    def post(self, command: EngineCommand) -> Future[Any]:
        """Have the next tick carry out a command; the future gets its answer.

        The answer is a BurstError once `refuse` was called. If the future is canceled
        before its tick, the command is dropped.
        """
        future: Future[Any] = Future()
        with self._posting:
            if self._closed:
                future.set_exception(_stopping())
            else:
                self._waiting.put((command, future))
        return future

    def carry_out(
        self,
        decide: Callable[[EngineCommand], tuple[TickResult, Any]],
        act: Callable[[TickResult], object],
    ) -> None:
        """Decide on each command, act on the result, and answer its caller.

        The answer is any exception that the command raises, or a BurstError of `act`.
        """
        for command, future in self._take():
            try:
                result, answer = decide(command)
            except Exception as error:  # noqa: BLE001 - its caller's answer, whatever it is
                future.set_exception(error)
                continue
            try:
                act(result)
            except BurstError as error:
                future.set_exception(error)
            else:
                future.set_result(answer)

    def refuse(self) -> None:
        """Refuse all commands that wait, and all that are posted from now on."""
        with self._posting:
            self._closed = True
        for _, future in self._take():
            future.set_exception(_stopping())

    def _take(self) -> Iterator[tuple[EngineCommand, Future[Any]]]:
        """Yield the commands that wait, also those that come meanwhile."""
        while self:
            command, future = self._waiting.get()
            if future.set_running_or_notify_cancel():
                yield command, future


def _stopping() -> BurstError:
    return BurstError("the daemon is stopping", "try again")


class StandingKeeper:
    """Has the engine request the nodes that standing minimums lack; logs refusals.

    It does so by a command, as a person would. Use from the engine's thread.
    """

    def __init__(self, post: Callable[..., Future[Any]]) -> None:
        """`post` is `Engine.post`."""
        self._post = post
        self._again = -math.inf
        self.refused: Mapping[str, str] = {}
        """By the text of a standing minimum: why it lacks nodes."""

    def ask(self, records: Records, settings: Settings, now: float) -> None:
        """Have the tick request missing nodes; after a refusal, once per cadence."""
        if all(each.missing(records) <= 0 for each in minimums_at(settings, now)):
            self.refused = {}
        elif not self.refused or not now < self._again:
            self._again = now + settings.daemon.cadence
            self._post(keep_minimums).add_done_callback(self._note)

    def _note(self, answer: Future[dict[str, str]]) -> None:
        error = answer.exception()
        refused = {"the settings": str(error)} if error else answer.result()
        for text, why in refused.items():
            if self.refused.get(text) != why:
                line = "standing minimum of %s is not met: %s"
                log.warn(line, text, why)
        self.refused = refused
