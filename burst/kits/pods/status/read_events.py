# SPDX-License-Identifier: MIT
"""Reads the events that say why pods of a namespace do not run.

An API server keeps the events of an hour, some five for each pod, and has no index of
them: a list with a field selector goes through all. So they are read only for bursts
that wait for longer than a burst does that comes up, and not with every look.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, POD
from burst.kits.pods.status.burst_objects import BurstObjects, is_suspended
from burst.kits.pods.status.describe import followers
from burst.kits.pods.status.pod_status import STARTING, WAITS, PodStatus, seconds_of
from burst.kits.pods.status.queueing import (
    POD_GROUP,
    WORKLOAD,
    merge_warnings,
    read_workloads,
)
from burst.kits.pods.status.warnings import PULLING, USUAL, Warnings, warnings_by_object
from burst.model.burst import BurstId
from burst.provider import Phase

# Pods whose image is on their node run within this; nobody has read a reason by then.
_PATIENT_S = 3.0
# For a namespace. The shortest time that depends on an event is a minute (pods that are
# denied), and counts from when the event says that it began.
_EVERY_S = 5.0


def read_warnings(
    cluster: Cluster,
    namespace: str,
    followers: Collection[PodStatus],
    *,
    suspended: bool = False,
) -> Warnings:
    """Return what events say of Jobs and pods if a follower waits, else nothing.

    They are not read otherwise, as a namespace may have many; nor are those that each
    pod has. `suspended`: a Job is, so that Kueue may say why. Raises as `Cluster` does.
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
    """The warnings of a namespace, for bursts that have waited. For one thread."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._known: set[BurstId] = set()
        """Those that there were in the last round."""
        self._since: dict[BurstId, float] = {}
        """Since when a burst waits; for ever if it ran before."""
        self._lost_at = -math.inf
        """When the last one was lost that ran."""
        self._read_at = -math.inf
        self._warnings: Warnings = {}

    def read(
        self,
        ids: Collection[BurstId],
        fresh: Mapping[BurstId, BurstObjects],
        now: float,
    ) -> Warnings:
        """Return what events say, at most some seconds old; nothing if no burst waits.

        `ids` are all bursts, `fresh` those that may not run, `now` is in seconds since
        the epoch. Raises as `Cluster` does.
        """
        words = {i: _words(burst) for i, burst in fresh.items()}
        waiting = [i for i, said in words.items() if _waits(said)]
        # Of a pod that made way for others, and is gone, only an event tells. It is
        # wanted before the next pod runs, and may be written a moment later.
        lost = {i for i in waiting if i in self._known and i not in self._since}
        # A clock may be set back, so what is noted is never later than now.
        self._since = {
            i: min(now, -math.inf if i in lost else self._since_of(fresh[i], now))
            for i in waiting
        }
        self._known = set(ids)
        self._lost_at = now if lost else min(now, self._lost_at)
        self._read_at = min(now, self._read_at)
        late = [i for i in waiting if now - self._since[i] >= _PATIENT_S]
        if not late:
            return {}
        pause = 0 if now - self._lost_at < _EVERY_S else _EVERY_S
        if now - self._read_at >= pause:
            told = [word for i in late for word in words[i]]
            held = (is_suspended(job) for i in late for job in fresh[i].of(JOB.name))
            self._warnings = read_warnings(
                self._cluster, self._namespace, told, suspended=any(held)
            )
            self._read_at = now
        return self._warnings

    def _since_of(self, burst: BurstObjects, now: float) -> float:
        """Return since when it waits.

        One that was not seen before waits since it was made: a daemon that was
        restarted reads its events at once.
        """
        if burst.id in self._since:
            return self._since[burst.id]
        made = (item["metadata"].get("creationTimestamp") for item in burst.objects)
        return min(map(seconds_of, filter(None, made)), default=now)


def _words(burst: BurstObjects) -> list[PodStatus]:
    """Return the words that an event may explain: none of a burst that is reaped."""
    return [] if burst.ending else [word for word, _ in followers(burst).values()]


def _waits(words: Collection[PodStatus]) -> bool:
    return any(word.phase is Phase.PENDING for word in words)
