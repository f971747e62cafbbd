# SPDX-License-Identifier: MIT
"""The logs of brokers: which there are, and what those tell that ended or run.

A container that was restarted has a new log, so a log is identified by the uid of its
pod and the number of restarts. The log of a broker that has ended does not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec

from burst.errors import ProviderError
from burst.kits.join_errors import has_joined
from burst.kits.pods.status.kept_object import KeptObject, seconds_of


class ContainerLog(msgspec.Struct, frozen=True):
    """The log of the broker in a pod since its last start."""

    key: str
    """Identifies the log: the uid of the pod and the number of restarts."""
    pod: str
    container: str
    started: float = 0.0
    """When the broker was started, in seconds since the epoch; 0 if it does not run."""


def log_of(pod: KeptObject) -> ContainerLog:
    """Return the present log of the broker in a pod."""
    broker = pod.broker
    running = broker.state.running
    return ContainerLog(
        key=f"{pod.metadata.uid}/{broker.restart_count}",
        pod=pod.name,
        container=pod.container.name,
        started=seconds_of(running.started_at) if running else 0.0,
    )


def running_logs(pods: Iterable[KeptObject]) -> tuple[ContainerLog, ...]:
    """Return the logs of the pods whose brokers run."""
    return tuple(log_of(pod) for pod in pods if pod.broker.state.running)


class EndedLogs:
    """Keeps logs that have ended, so that each is read once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def begin(self) -> None:
        """Begin a round. A log that is not requested in a round is then forgotten."""
        self._before, self._known = self._known, {}

    def get(self, log: ContainerLog, read: Callable[[ContainerLog], str]) -> str:
        """Return the log. If it is not known, `read` is called, which may raise.

        An empty log is not kept, as its node may not have sent it yet.
        """
        text = self._known.get(log.key) or self._before.get(log.key) or read(log)
        if text:
            self._known[log.key] = text
        return text


# Most brokers join in the first second.
_FIRST_S = 4.0
_LONGEST_PAUSE_S = 60.0
# Longer than `[deadlines] join`: by then the burst is gone, or it is online.
_GIVEN_UP_S = 900.0
# Requests in one call of `observe`.
_MOST = 4


class JoinLogs:
    """Keeps the ends of the logs of brokers that may not have joined yet.

    A provider is not told whether its followers join. The log of a pod tells it, or the
    reason why not. Each log costs a request to a node, so the requests are spread over
    several calls.
    """

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
