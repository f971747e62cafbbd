# SPDX-License-Identifier: MIT
"""The objects of all bursts of one provider of one owner, kept by watches."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

import msgspec

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import KINDS, MINICLUSTER, Kind, Manifest
from burst.kits.kube.selection import Selection
from burst.kits.kube.watched_kind import Changes, WatchedKind
from burst.kits.pods.kept_fields import KeptObject
from burst.kits.pods.names import Tags
from burst.kits.pods.reaper import METADATA_ONLY, kinds_of, may_exist
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status import BurstObjects
from burst.model.burst import BurstId

_Key = tuple[str, str]
"""Kind and name of an object."""


class WatchedBursts:
    """Keeps the objects as short JSON, and has watches say what changed."""

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        tags: Tags,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._labels = tags.labels()
        self._clock = clock
        self._watched: dict[Kind, WatchedKind[KeptObject]] = {}
        self._kept: dict[BurstId, dict[_Key, bytes]] = {}
        self._burst_of: dict[_Key, BurstId] = {}
        self._changed: set[BurstId] = set()
        self._expected: queue.SimpleQueue[BurstId] = queue.SimpleQueue()
        """What other threads have provisioned meanwhile."""

    def refresh(self) -> set[BurstId]:
        """Read; return the bursts that changed, came or went since the last time.

        Raises Transient, Refused. What was read before must not be used then.
        """
        expected = set()
        while not self._expected.empty():
            expected.add(self._expected.get())
        self._read()
        if expected - self._kept.keys():
            # A watch may be a moment late, which a list is not.
            for watched in self._watched.values():
                watched.distrust()
            self._read()
        changed, self._changed = self._changed, set()
        return changed

    def ids(self) -> list[BurstId]:
        """Return all bursts, in order."""
        return sorted(self._kept)

    def objects(self, burst: BurstId) -> BurstObjects:
        """Return those of a burst, with the fields of `KeptObject`."""
        found = self._kept[burst]
        return BurstObjects(burst, tuple(_manifest(key, found[key]) for key in found))

    def expect(self, burst: BurstId) -> None:
        """Note that the burst was provisioned: the next read must have it."""
        self._expected.put(burst)

    def close(self) -> None:
        """Close the connections of all watches."""
        for watched in self._watched.values():
            watched.close()

    def _read(self) -> None:
        for kind in kinds_of(self._settings):
            if kind not in self._watched:
                if not may_exist(self._cluster, self._settings, kind):
                    continue
                self._watched[kind] = self._watch(kind)
            self._apply(kind, self._watched[kind].changes())

    def _watch(self, kind: Kind) -> WatchedKind[KeptObject]:
        # A MiniCluster's containers are of another form than a pod's.
        bare = kind in (*METADATA_ONLY, MINICLUSTER)
        namespace = self._settings.namespace
        selected = Selection(kind, namespace, self._labels, metadata_only=bare)
        return WatchedKind(self._cluster, selected, KeptObject, self._clock)

    def _apply(self, kind: Kind, changes: Changes[KeptObject]) -> None:
        if changes.listed is not None:
            there = {(kind.name, item.metadata.name) for item in changes.listed}
            for key in [key for key in self._burst_of if key[0] == kind.name]:
                if key not in there:
                    self._drop(key)
            for item in changes.listed:
                self._put(kind, item)
        for exists, item in changes.later:
            if exists:
                self._put(kind, item)
            else:
                self._drop((kind.name, item.metadata.name))

    def _put(self, kind: Kind, item: KeptObject) -> None:
        key, burst = (kind.name, item.metadata.name), BurstId(item.burst)
        if self._burst_of.get(key, burst) != burst:
            self._drop(key)
        if not burst:
            return  # It has our labels but no burst's, so it was not made by us.
        kept = msgspec.json.encode(item)
        found = self._kept.setdefault(burst, {})
        if found.get(key) != kept:
            found[key] = kept
            self._burst_of[key] = burst
            self._changed.add(burst)

    def _drop(self, key: _Key) -> None:
        burst = self._burst_of.pop(key, None)
        if burst is None:
            return
        del self._kept[burst][key]
        if not self._kept[burst]:
            del self._kept[burst]
        self._changed.add(burst)


def _manifest(key: _Key, kept: bytes) -> Manifest:
    found: Manifest = msgspec.json.decode(kept)
    kind = KINDS[key[0]]
    return {"spec": {}, **found, "apiVersion": kind.api, "kind": kind.name}
