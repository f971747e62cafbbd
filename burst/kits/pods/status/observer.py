# SPDX-License-Identifier: MIT
"""Determines the status of all bursts of a provider, from objects, events and logs.

The status of a burst whose brokers all run depends only on its objects and the logs of
its pods. So it is kept, and determined again only if one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from burst.errors import ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import POD
from burst.kits.pods.lifecycle.watched_bursts import WatchedBursts
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.pods.status.container_log import (
    ContainerLog,
    EndedLogs,
    JoinLogs,
    log_of,
    running_logs,
)
from burst.kits.pods.status.describe import describe, followers
from burst.kits.pods.status.isolated_status import (
    bounded,
    describe_instance,
    exit_status_of,
    failed_pod,
    lead_pod,
    program_of,
)
from burst.kits.pods.status.read_events import WarningReader
from burst.kits.pods.status.warnings import Warnings
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Phase

# How many times to request the log of a program that has ended. A node may be busy; if
# the node is gone, so is the log.
_LOOKS = 20


class _Steady(msgspec.Struct, frozen=True):
    """The kept status of a burst that runs."""

    status: BurstStatus
    logs: tuple[ContainerLog, ...]
    """The logs of its brokers."""
    unjoined: dict[str, str]
    """The ends of the logs that do not yet say that the broker has joined, by pod."""


class Observer:
    """Observes the bursts of one owner in a namespace. For one thread."""

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        source: WatchedBursts,
        clock: Callable[[], float],
    ) -> None:
        """`clock` returns seconds since the epoch."""
        self._cluster = cluster
        self._settings = settings
        self._source = source
        self._clock = clock
        self._steady: dict[BurstId, _Steady] = {}
        self._unread: dict[BurstId, int] = {}
        self._warnings = WarningReader(cluster, settings.namespace)
        self._join_logs = JoinLogs(self._ask_tail)
        self._ended_logs = EndedLogs()

    def observe(self) -> Sequence[BurstStatus]:
        """Return the status of all bursts that have an object."""
        for burst_id in self._source.refresh():
            self._steady.pop(burst_id, None)
        ids, now = self._source.ids(), self._clock()
        found = {i: self._source.objects(i) for i in ids if i not in self._steady}
        self._ended_logs.begin()
        warnings = self._warnings.read(ids, found, now)
        logs = {i: known.logs for i, known in self._steady.items()}
        logs |= {i: _join_logs_of(burst) for i, burst in found.items()}
        ends = self._join_logs.read((log for own in logs.values() for log in own), now)
        for burst_id, known in list(self._steady.items()):
            if known.unjoined != _select(ends, known.logs):
                del self._steady[burst_id]
                found[burst_id] = self._source.objects(burst_id)
        fresh: dict[BurstId, BurstStatus] = {}
        for burst_id, burst in found.items():
            unjoined = _select(ends, logs[burst_id])
            status = self._describe(burst, warnings, unjoined, now)
            fresh[burst_id] = status
            if _is_steady(burst, status):
                self._steady[burst_id] = _Steady(status, logs[burst_id], unjoined)
        return [fresh[i] if i in fresh else self._steady[i].status for i in ids]

    def _describe(
        self,
        burst: BurstObjects,
        warnings: Warnings,
        unjoined: Mapping[str, str],
        now: float,
    ) -> BurstStatus:
        schedule = self._settings.schedule
        isolated = bool(program_of(burst))
        logs = {} if isolated else {**unjoined, **self._crash_logs(burst)}
        status = describe(burst, warnings, logs, schedule, now)
        if status.phase is Phase.PENDING:
            why = "; ".join(filter(None, (status.why, self._warnings.trouble)))
            status = msgspec.structs.replace(status, why=why)
        if not isolated:
            return status
        return describe_instance(
            burst, status, self._isolated_log(burst), self._settings
        )

    def _isolated_log(self, burst: BurstObjects) -> str | None:
        """Return the log of an isolated burst that has ended or failed; "" if it runs.

        It is None if the burst has ended and its log cannot be read now. The burst then
        counts as running, until `_LOOKS` calls could not read the log.
        """
        lead, failed = lead_pod(burst), failed_pod(burst)
        if lead is None or exit_status_of(burst) is None:
            return self._tail(log_of(failed)) if failed is not None else ""
        try:
            return self._ended_logs.get(log_of(lead), self._read_whole)
        except ProviderError as error:
            self._unread[burst.id] = self._unread.get(burst.id, 0) + 1
            if self._unread[burst.id] < _LOOKS:
                return None
            return f"its log cannot be read: {error.what}\n"

    def _crash_logs(self, burst: BurstObjects) -> dict[str, str]:
        """Return the end of the log of the first crashed broker, by pod name.

        It is empty if no broker has crashed.
        """
        pods = {pod.name: pod for pod in burst.of(POD.name)}
        for word, name in followers(burst).values():
            if word.crashed:
                return {name: self._tail(log_of(pods[name]))}
        return {}

    def _tail(self, log: ContainerLog) -> str:
        """Return the end of the log of a broker that has ended, or the error."""
        try:
            found = self._ended_logs.get(log, self._ask_tail)
        except ProviderError as error:
            # The node may be gone. The rest of the status is still reported.
            return f"its log cannot be read: {error.what}"
        return found or "its log is empty"

    def _ask_tail(self, log: ContainerLog) -> str:
        return self._cluster.tail(self._settings.namespace, log.pod, log.container)

    def _read_whole(self, log: ContainerLog) -> str:
        namespace = self._settings.namespace
        return bounded(self._cluster.log(namespace, log.pod, log.container))


def _join_logs_of(burst: BurstObjects) -> tuple[ContainerLog, ...]:
    """Return the logs of a burst that may tell why its brokers do not join."""
    if burst.ending or program_of(burst):
        return ()
    return running_logs(burst.of(POD.name))


def _select(ends: Mapping[str, str], logs: Sequence[ContainerLog]) -> dict[str, str]:
    """Return the known ends of these logs, by pod."""
    return {log.pod: ends[log.pod] for log in logs if log.pod in ends}


def _is_steady(burst: BurstObjects, status: BurstStatus) -> bool:
    """Return whether the status changes only if an object or a log changes."""
    if status.phase is not Phase.RUNNING or status.instance is not None:
        return False
    # The log of a broker that crashed may not have been read yet.
    if burst.leaving:
        return False
    return not any(word.crashed for word, _ in followers(burst).values())
