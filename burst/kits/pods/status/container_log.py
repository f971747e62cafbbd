# SPDX-License-Identifier: MIT
"""Identifies the logs of brokers, and keeps the logs of brokers that have ended.

A container that was restarted has a new log, so a log is identified by the uid of its
pod and the number of restarts. The log of a broker that has ended does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from burst.kits.kube.kinds import Manifest, name_of
from burst.kits.pods.status.pod_status import seconds_of
from burst.kits.pods.template.containers import container_of, container_status_of


class ContainerLog(msgspec.Struct, frozen=True):
    """The log of the broker in a pod since its last start."""

    key: str
    """Identifies the log: the uid of the pod and the number of restarts."""
    pod: str
    container: str
    started: float = 0.0
    """When the broker was started, in seconds since the epoch; 0 if it does not run."""


def log_of(pod: Manifest) -> ContainerLog:
    """Return the present log of the broker in a pod."""
    status = container_status_of(pod)
    running = (status.get("state") or {}).get("running") or {}
    return ContainerLog(
        key=f"{pod['metadata'].get('uid', '')}/{status.get('restartCount', 0)}",
        pod=name_of(pod),
        container=str(container_of(pod).get("name", "")),
        started=seconds_of(running.get("startedAt") or ""),
    )


def running_logs(pods: Iterable[Manifest]) -> tuple[ContainerLog, ...]:
    """Return the logs of the pods whose brokers run."""
    return tuple(
        log_of(pod)
        for pod in pods
        if "running" in (container_status_of(pod).get("state") or {})
    )


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
