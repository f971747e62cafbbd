# SPDX-License-Identifier: MIT
"""Keeps the objects of all bursts of one provider of one owner, by watches."""

from __future__ import annotations

import queue
from collections.abc import Mapping

import msgspec

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import MINICLUSTER, POD, Kind, Selection
from burst.kits.kube.watched_kind import Changes, WatchedKind
from burst.kits.pods.lifecycle.reaper import METADATA_ONLY, kinds_of, may_exist
from burst.kits.pods.names import ID, Tags
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.pods.status.kept_object import KeptObject
from burst.model.burst import BurstId

# The deletion time of a pod that was deleted without a grace period: the API server
# reports none.
_AT_ONCE = "1970-01-01T00:00:00Z"

_Key = tuple[str, str]
"""Kind and name of an object."""


class WatchedBursts:
    """Keeps the objects, and learns of their changes from watches."""

    def __init__(self, cluster: Cluster, settings: PodSettings, tags: Tags) -> None:
        self._cluster = cluster
        self._settings = settings
        self._labels = tags.labels()
        self._watched: dict[Kind, WatchedKind[KeptObject]] = {}
        self._kept: dict[BurstId, dict[_Key, KeptObject]] = {}
        self._burst_of: dict[_Key, BurstId] = {}
        self._versions: dict[_Key, int] = {}
        """The newest resource version that was read of each kept object."""
        self._former: dict[BurstId, dict[tuple[str, int], KeptObject]] = {}
        """The last pod that is gone, for each `KeptObject.place`."""
        self._changed: set[BurstId] = set()
        """Bursts that changed since the last `refresh`."""
        self._expected: queue.SimpleQueue[tuple[BurstId, bool]] = queue.SimpleQueue()
        """Bursts that other threads have made or changed, with `anew` of `expect`."""
        self._awaited: set[BurstId] = set()
        """Expected bursts that are listed by the next read if they are not known."""
        self._anew: set[BurstId] = set()
        """Expected bursts that are listed by the next read even if they are known."""

    def refresh(self) -> set[BurstId]:
        """Read; return the bursts that changed, came or went since the last call.

        Raises Transient, Refused. After an error, do not use what was read before.
        """
        while not self._expected.empty():
            burst, anew = self._expected.get()
            (self._anew if anew else self._awaited).add(burst)
        self._read()
        for burst in self._anew | (self._awaited - self._kept.keys()):
            # A watch may lag by a moment; a list is up to date.
            self._list(burst)
        self._awaited.clear()
        self._anew.clear()
        changed, self._changed = self._changed, set()
        return changed

    def ids(self) -> list[BurstId]:
        """Return the ids of all bursts, in order."""
        return sorted(self._kept)

    def objects(self, burst: BurstId) -> BurstObjects:
        """Return the objects of a burst."""
        found = BurstObjects(burst, tuple(self._kept[burst].values()))
        gone = self._former.get(burst, {})
        for place, pod in list(gone.items()):
            if found.ending or found.host_of(pod) not in found.hosts:
                del gone[place]  # the host left the burst, so the pod was not lost
        return msgspec.structs.replace(found, former=tuple(gone.values()))

    def expect(self, burst: BurstId, *, anew: bool = False) -> None:
        """Note that the burst was provisioned, so that the next read includes it.

        With `anew` the burst was changed, and the next read lists it in any case.
        """
        self._expected.put((burst, anew))

    def _read(self) -> None:
        for kind in kinds_of(self._settings):
            if kind not in self._watched:
                if not may_exist(self._cluster, self._settings, kind):
                    continue
                self._watched[kind] = self._watch(kind)
            self._apply(kind, self._watched[kind].changes())

    def _list(self, burst: BurstId) -> None:
        """List the objects of one burst, and add them.

        The watches continue from before this list. So they still report later
        deletions, and also older versions of objects, which `_put` ignores.
        """
        for kind in self._watched:
            selected = self._selection(kind, {**self._labels, ID: burst})
            listed, _ = self._cluster.find_as(KeptObject, selected)
            for item in listed:
                self._put(kind, item)

    def _watch(self, kind: Kind) -> WatchedKind[KeptObject]:
        selected = self._selection(kind, self._labels)
        return WatchedKind(self._cluster, selected, KeptObject)

    def _selection(self, kind: Kind, labels: Mapping[str, str]) -> Selection:
        # A MiniCluster's containers have another form than a pod's.
        bare = kind in (*METADATA_ONLY, MINICLUSTER)
        return Selection(kind, self._settings.namespace, labels, metadata_only=bare)

    def _apply(self, kind: Kind, changes: Changes[KeptObject]) -> None:
        if changes.listed is not None:
            there = {(kind.name, item.metadata.name) for item in changes.listed}
            for key in [key for key in self._burst_of if key[0] == kind.name]:
                self._versions.pop(key, None)
                if key not in there:
                    self._drop(key)
            for item in changes.listed:
                self._put(kind, item)
        for exists, item in changes.later:
            key = kind.name, item.metadata.name
            if exists:
                self._put(kind, item)
            elif self._is_kept(key, item):
                # Otherwise a newer object of the same name was listed meanwhile.
                self._drop(key, item)

    def _put(self, kind: Kind, item: KeptObject) -> None:
        key, burst = (kind.name, item.metadata.name), BurstId(item.burst)
        version = int(item.version) if item.version.isdecimal() else 0
        if version < self._versions.get(key, 0):
            return  # older than what was listed
        if self._burst_of.get(key, burst) != burst:
            self._drop(key)
        if not burst:
            return  # It has our labels but no burst's id, so it was not made by us.
        self._versions[key] = version
        # Without the version, an object that changed only in other fields is equal.
        item.metadata.resource_version, item.kind = "", kind.name
        found = self._kept.setdefault(burst, {})
        if found.get(key) != item:
            found[key] = item
            self._burst_of[key] = burst
            self._changed.add(burst)

    def _is_kept(self, key: _Key, item: KeptObject) -> bool:
        burst = self._burst_of.get(key)
        if burst is None:
            return False
        return self._kept[burst][key].metadata.uid == item.metadata.uid

    def _drop(self, key: _Key, last: KeptObject | None = None) -> None:
        """Forget an object; `last` is its state when it was deleted, if known."""
        burst = self._burst_of.pop(key, None)
        self._versions.pop(key, None)
        if burst is None:
            return
        pod = last or self._kept[burst][key]
        del self._kept[burst][key]
        if key[0] == POD.name:
            if last is not None and not last.ending:
                last.metadata.deletion_timestamp = _AT_ONCE
            self._former.setdefault(burst, {})[pod.place] = pod
        if not self._kept[burst]:
            del self._kept[burst]
            self._former.pop(burst, None)
        self._changed.add(burst)
