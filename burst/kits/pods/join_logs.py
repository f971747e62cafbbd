# SPDX-License-Identifier: MIT
"""When the log of a broker that runs is read: until it says that it has joined.

A provider is not told whether its followers join. The log of a pod says so, and else
why not. It costs a request to the node for each pod, so they are spread over the calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from burst.kits.join_errors import has_joined
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.containers import container_status_of, state_of
from burst.kits.pods.pod_status import seconds_of

# Most brokers join in the first second.
_FIRST_S = 4.0
_LONGEST_PAUSE_S = 60.0
# Longer than `[deadlines] join`: then the burst is gone, or it is online.
_GIVEN_UP_S = 900.0
# Requests in one call of `observe`.
_MOST = 4


class JoinLogs:
    """The ends of logs of brokers that may not have joined yet."""

    def __init__(self, tail: Callable[[Manifest], str]) -> None:
        """`tail` returns the end of the log of a pod."""
        self._tail = tail
        self._found: dict[str, str] = {}
        """By the uid of a pod and its restarts; empty once it has joined."""
        self._due: dict[str, float] = {}
        """When the log is read again, in seconds since the epoch."""

    def read(self, pods: Iterable[Manifest], now: float) -> dict[str, str]:
        """Return what the logs of these pods say, by the name of the pod.

        Called with all pods of all bursts; what is known of others is forgotten.
        """
        running = dict(_running(pods))
        for known in (self._found, self._due):
            for key in known.keys() - running.keys():
                del known[key]
        waiting = [key for key in running if now >= self._due_at(key, running[key])]
        # Those that were never read come last: others have waited for longer.
        waiting.sort(key=lambda key: self._due.get(key, math.inf))
        for key in waiting[:_MOST]:
            self._read(key, running[key], now)
        said = ((running[key], log) for key, log in self._found.items() if log)
        return {pod["metadata"]["name"]: log for pod, log in said}

    def _due_at(self, key: str, pod: Manifest) -> float:
        return self._due.get(key, _started(pod) + _FIRST_S)

    def _read(self, key: str, pod: Manifest, now: float) -> None:
        log, age = self._tail(pod), now - _started(pod)
        joined = has_joined(log)
        self._found[key] = "" if joined else log
        over = joined or age > _GIVEN_UP_S
        # Twice as long each time.
        pause = min(max(age, _FIRST_S), _LONGEST_PAUSE_S)
        self._due[key] = math.inf if over else now + pause


def _running(pods: Iterable[Manifest]) -> Iterator[tuple[str, Manifest]]:
    for pod in pods:
        if "running" in state_of(pod):
            restarts = container_status_of(pod).get("restartCount", 0)
            yield f"{pod['metadata'].get('uid', '')}/{restarts}", pod


def _started(pod: Manifest) -> float:
    return seconds_of((state_of(pod).get("running") or {}).get("startedAt") or "")
