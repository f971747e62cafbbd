# SPDX-License-Identifier: MIT
"""Reads the events that say why pods of a namespace do not run.

An API server keeps the events of the last hour, some five for each pod, without an
index: a list with a field selector goes through all of them. So they are read only for
bursts that wait longer than usual, and not at every `observe`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from burst.errors import ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, POD
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.pods.status.describe import followers
from burst.kits.pods.status.pod_status import STARTING, WAITS, PodStatus
from burst.kits.pods.status.queueing import (
    POD_GROUP,
    WORKLOAD,
    merge_warnings,
    read_workloads,
)
from burst.kits.pods.status.warnings import PULLING, USUAL, Warnings, warnings_by_object
from burst.model.burst import BurstId
from burst.provider import Phase

# Seconds in which pods run if their node has the image. No reason is needed before.
_PATIENT_S = 3.0
# Seconds between two reads of a namespace. The shortest deadline that depends on an
# event is a minute (for pods that are denied), and counts from the event's own time.
_EVERY_S = 5.0


def read_warnings(
    cluster: Cluster,
    namespace: str,
    followers: Collection[PodStatus],
    *,
    suspended: bool = False,
) -> Warnings:
    """Return the events about Jobs and pods if a follower waits, else nothing.

    A namespace may have many events, so they are not read otherwise, and the events
    that each pod has are left out. `suspended`: a Job is suspended, so Kueue's events
    are read too. Raises as `Cluster` does.
    """
    if not any(word.phase is Phase.PENDING for word in followers):
        return {}
    events = [event for kind in (JOB, POD) for event in cluster.events(namespace, kind)]
    events += cluster.normal_events(namespace, POD, but=USUAL)
    if any(word.why == STARTING for word in followers):
        events += cluster.events(namespace, POD, reason=PULLING)
    queues = [WORKLOAD] if suspended else []
    queues += [POD_GROUP] if any(word.why == WAITS for word in followers) else []
    for kind in queues:
        events += cluster.events(namespace, kind)
        events += cluster.normal_events(namespace, kind, but=())
    found = warnings_by_object(events)
    if not suspended:
        return found
    return merge_warnings((found, read_workloads(cluster, namespace)))


class WarningReader:
    """Reads a namespace's events for bursts that have waited. For one thread."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._known: set[BurstId] = set()
        """The bursts of the last call."""
        self._since: dict[BurstId, float] = {}
        """Since when each burst waits; -inf if it ran before."""
        self._lost_at = -math.inf
        """When a burst that ran began to wait, most recently."""
        self._read_at = -math.inf
        self._warnings: Warnings = {}
        self.trouble = ""
        """Why events could not be read last; empty if they could, or need not."""

    def read(
        self,
        ids: Collection[BurstId],
        fresh: Mapping[BurstId, BurstObjects],
        now: float,
    ) -> Warnings:
        """Return the events, at most some seconds old; nothing if no burst waits.

        `ids` are all bursts, `fresh` the bursts that may not run, `now` is in seconds
        since the epoch. If they cannot be read, returns those of the last time: events
        only give reasons, and all else is known without them.
        """
        words = {i: _words(burst) for i, burst in fresh.items()}
        waiting = [i for i, said in words.items() if _waits(said)]
        # If a pod was preempted and is gone, only an event tells so. It has to be read
        # before the next pod runs, and may be written a moment later.
        lost = {i for i in waiting if i in self._known and i not in self._since}
        # A clock may be set back, so no noted time may be later than now.
        self._since = {
            i: min(now, -math.inf if i in lost else self._since_of(fresh[i], now))
            for i in waiting
        }
        self._known = set(ids)
        self._lost_at = now if lost else min(now, self._lost_at)
        self._read_at = min(now, self._read_at)
        late = [i for i in waiting if now - self._since[i] >= _PATIENT_S]
        if not late:
            self.trouble = ""
            return {}
        pause = 0 if now - self._lost_at < _EVERY_S else _EVERY_S
        if now - self._read_at >= pause:
            told = [word for i in late for word in words[i]]
            held = (job.suspended for i in late for job in fresh[i].of(JOB.name))
            self._read_at, self.trouble = now, ""
            try:
                self._warnings = read_warnings(
                    self._cluster, self._namespace, told, suspended=any(held)
                )
            except ProviderError as error:
                self.trouble = f"events cannot be read: {error.what}"
        return self._warnings

    def _since_of(self, burst: BurstObjects, now: float) -> float:
        """Return since when a burst waits.

        A burst that was not seen before waits since its creation, so a daemon that was
        restarted reads its events at once.
        """
        if burst.id in self._since:
            return self._since[burst.id]
        return min(filter(None, (o.made_at for o in burst.objects)), default=now)


def _words(burst: BurstObjects) -> list[PodStatus]:
    """Return the statuses that an event may explain; none if the burst is reaped."""
    return [] if burst.ending else [word for word, _ in followers(burst).values()]


def _waits(words: Collection[PodStatus]) -> bool:
    return any(word.phase is Phase.PENDING for word in words)
