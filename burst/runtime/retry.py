# SPDX-License-Identifier: MIT
"""Repeats an attempt until it succeeds, a deadline passes or the daemon stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from burst import log
from burst.errors import BurstError
from burst.model.fsd import format_fsd
from burst.runtime.clock import Clock
from burst.wakeup import WakeUp

_T = TypeVar("_T")
# Between two attempts, in seconds.
_EVERY = 1.0


class Retry:
    """Waits at a wake-up between attempts, until `stopping` returns True."""

    def __init__(self, wakeup: WakeUp, stopping: Callable[[], bool]) -> None:
        self._wakeup = wakeup
        self._stopping = stopping

    def until(
        self,
        limit: float,
        attempt: Callable[[], _T],
        retried: Callable[[BurstError], bool] = lambda _: True,
        *,
        told: bool = True,
    ) -> _T | None:
        """Return what the attempt returns once it succeeds, None if told to stop.

        After an error for which `retried` returns True, the attempt is repeated, for
        `limit` seconds; then the last error is raised. With `told` each new error is
        logged.
        """
        clock, said = Clock(), ""
        ends = clock() + limit
        while not self._stopping():
            try:
                return attempt()
            except BurstError as error:
                if clock() >= ends or not retried(error):
                    raise
                if told and str(error) != said:
                    said = str(error)
                    log.say("waiting, for at most %s: %s", format_fsd(limit), said)
            self._wakeup.wait(_EVERY)
        return None
