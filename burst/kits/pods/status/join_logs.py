# SPDX-License-Identifier: MIT
"""When the log of a broker that runs is read: until it says that it has joined.

A provider is not told whether its followers join. The log of a pod says so, and else
why not. It costs a request to the node for each pod, so they are spread over the calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from burst.kits.join_errors import has_joined
from burst.kits.pods.status.container_log import ContainerLog

# Most brokers join in the first second.
_FIRST_S = 4.0
_LONGEST_PAUSE_S = 60.0
# Longer than `[deadlines] join`: then the burst is gone, or it is online.
_GIVEN_UP_S = 900.0
# Requests in one call of `observe`.
_MOST = 4


class JoinLogs:
    """The ends of logs of brokers that may not have joined yet."""

    def __init__(self, tail: Callable[[ContainerLog], str]) -> None:
        """`tail` returns the end of a log."""
        self._tail = tail
        self._found: dict[str, str] = {}
        """By the key of a log; empty once the broker has joined."""
        self._due: dict[str, float] = {}
        """When the log is read again, in seconds since the epoch."""

    def read(self, logs: Iterable[ContainerLog], now: float) -> dict[str, str]:
        """Return what these logs say, by the name of the pod.

        Called with those of all pods that run, of all bursts; what is known of others
        is forgotten.
        """
        running = {log.key: log for log in logs}
        for known in (self._found, self._due):
            for key in known.keys() - running.keys():
                del known[key]
        waiting = [key for key in running if now >= self._due_at(running[key])]
        # Those that were never read come last: others have waited for longer.
        waiting.sort(key=lambda key: self._due.get(key, math.inf))
        for key in waiting[:_MOST]:
            self._read(running[key], now)
        return {running[key].pod: text for key, text in self._found.items() if text}

    def _due_at(self, log: ContainerLog) -> float:
        return self._due.get(log.key, log.started + _FIRST_S)

    def _read(self, log: ContainerLog, now: float) -> None:
        text, age = self._tail(log), now - log.started
        joined = has_joined(text)
        self._found[log.key] = "" if joined else text
        over = joined or age > _GIVEN_UP_S
        # Twice as long each time.
        pause = min(max(age, _FIRST_S), _LONGEST_PAUSE_S)
        self._due[log.key] = math.inf if over else now + pause
