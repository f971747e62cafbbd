# SPDX-License-Identifier: MIT
"""Reads the logs of running brokers until they say that the brokers have joined.

A provider is not told whether its followers join. The log of a pod tells it, or the
reason why not. Each log costs a request to a node, so the requests are spread over
several calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from burst.errors import ProviderError
from burst.kits.join_errors import has_joined
from burst.kits.pods.status.container_log import ContainerLog

# Most brokers join in the first second.
_FIRST_S = 4.0
_LONGEST_PAUSE_S = 60.0
# Longer than `[deadlines] join`: by then the burst is gone, or it is online.
_GIVEN_UP_S = 900.0
# Requests in one call of `observe`.
_MOST = 4


class JoinLogs:
    """Keeps the ends of the logs of brokers that may not have joined yet."""

    def __init__(self, tail: Callable[[ContainerLog], str]) -> None:
        """`tail` returns the end of a log. It may raise ProviderError."""
        self._tail = tail
        self._found: dict[str, str] = {}
        """The end of each log by its key; empty once the broker has joined."""
        self._due: dict[str, float] = {}
        """When each log is read again, in seconds since the epoch."""

    def read(self, logs: Iterable[ContainerLog], now: float) -> dict[str, str]:
        """Return the ends of the logs of brokers that have not joined, by pod name.

        `logs` must be those of all running pods of all bursts: other logs are
        forgotten.
        """
        running = {log.key: log for log in logs}
        for known in (self._found, self._due):
            for key in known.keys() - running.keys():
                del known[key]
        waiting = [key for key in running if now >= self._due_at(running[key])]
        # Logs that were never read come last, as the others have waited longer.
        waiting.sort(key=lambda key: self._due.get(key, math.inf))
        for key in waiting[:_MOST]:
            if not self._read(running[key], now):
                break  # its node may be away, and each such log takes seconds
        return {running[key].pod: text for key, text in self._found.items() if text}

    def _due_at(self, log: ContainerLog) -> float:
        return self._due.get(log.key, log.started + _FIRST_S)

    def _read(self, log: ContainerLog, now: float) -> bool:
        """Read a log, and keep its end or the error; return whether it was read."""
        age, trouble = now - log.started, ""
        try:
            text = self._tail(log) or "its log is empty"
        except ProviderError as error:
            text = trouble = f"its log cannot be read: {error.what}"
        joined = has_joined(text)
        self._found[log.key] = "" if joined else text
        over = joined or age > _GIVEN_UP_S
        # The time since the start doubles from one read to the next.
        pause = min(max(age, _FIRST_S), _LONGEST_PAUSE_S)
        self._due[log.key] = math.inf if over else now + pause
        return not trouble
