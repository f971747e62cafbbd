# SPDX-License-Identifier: MIT
"""Limits how often each guest may call the service."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from burst.errors import CallsTooOften
from burst.model.call_rate import CallRate, SavedCalls, take_calls
from burst.request_threads import COMMANDS, FAST_METHODS

CALL_RATE = CallRate(20.0, 200)
"""How many calls one user may make: per second in the long run, and at once. A command
that waits (`burst request`) asks five times a second; a script calls for each of its
jobs."""
KNOWN_USERS = 4096
"""How many users are remembered: those who called last. A forgotten user counts as a
new one, who may call no more often than others."""
# What a call of each method counts; 1 by default. A command makes the daemon take a
# tick. A fast method reads from memory, and `flux submit --burst` calls one each time.
# The archive is read from disk.
_COSTS: Mapping[str, float] = {
    **dict.fromkeys(COMMANDS, 5.0),
    **dict.fromkeys(FAST_METHODS, 0.25),
    "cost": 2.0,
    "report": 5.0,
}


class CallLimits:
    """Remembers how many calls each guest has left. From any thread."""

    def __init__(
        self,
        rate: CallRate = CALL_RATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._saved: OrderedDict[int, SavedCalls] = OrderedDict()

    def admit(self, method: str, userid: int, owner: bool) -> None:
        """Count a call. Raises CallsTooOften if a guest calls too often."""
        if owner:
            return
        rate, cost = self._rate, _COSTS.get(method, 1.0)
        with self._lock:
            saved = self._saved.pop(userid, None)
            left, wait = take_calls(saved, rate, cost, self._clock())
            self._saved[userid] = left
            if len(self._saved) > KNOWN_USERS:
                self._saved.popitem(last=False)
        if wait:
            seconds = max(1, math.ceil(wait))
            raise CallsTooOften(
                f"you call the daemon too often: it allows {rate.per_second:g} calls a"
                " second in the long run",
                f"try again in {seconds} s",
            )
