# SPDX-License-Identifier: MIT
"""Deletes bursts, and confirms that nothing of one is left.

A Job is deleted in the foreground: it exists until its pods are gone. A MiniCluster
cannot be: its operator makes children again while it exists, so one that waited for
them would exist for ever. An operator that read it just before its end makes children
after that, which Kubernetes deletes as their owner is gone. So the Secret is deleted
last, some time after all other objects are gone.
"""

from __future__ import annotations

from burst.errors import NotFound
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import (
    CONFIG_MAP,
    JOB,
    MINICLUSTER,
    POD,
    SECRET,
    SERVICE,
    Kind,
    Manifest,
    annotations_of,
    is_ending,
    labels_of,
    name_of,
)
from burst.kits.pods.names import ALONE_SINCE, Tags, is_name
from burst.kits.pods.settings import PodSettings
from burst.model.burst import BurstId

OWN_KINDS = JOB, POD, CONFIG_MAP, SECRET, SERVICE
# Of these only metadata is read, so no Secret's content is sent.
_BY_NAME_ONLY = CONFIG_MAP, SECRET, SERVICE


def kinds_of(settings: PodSettings) -> tuple[Kind, ...]:
    """Return the kinds that a burst may have objects of; first what is made last."""
    return (MINICLUSTER, *OWN_KINDS) if settings.form == "operator" else OWN_KINDS


def find_ours(
    cluster: Cluster, settings: PodSettings, labels: dict[str, str]
) -> list[Manifest]:
    """Return all objects with these labels, by one list of each kind."""
    return [
        item
        for kind in kinds_of(settings)
        if may_exist(cluster, settings, kind)
        for item in cluster.find(
            kind, settings.namespace, labels, metadata_only=kind in _BY_NAME_ONLY
        )
    ]


def may_exist(cluster: Cluster, settings: PodSettings, kind: Kind) -> bool:
    """Return whether there can be objects of the kind.

    Before the operator of `operator_yaml` is installed there can be no MiniCluster.
    Without `operator_yaml` a missing kind is an error, which a list of it raises.
    """
    ours_to_bring = kind == MINICLUSTER and bool(settings.operator_yaml)
    return not ours_to_bring or cluster.serves(kind)


class Reaper:
    """Deletes the objects of one provider of one owner."""

    def __init__(self, cluster: Cluster, settings: PodSettings, tags: Tags) -> None:
        self._cluster = cluster
        self._settings = settings
        self._tags = tags
        self._parent = kinds_of(settings)[0]

    def reap(self, burst_id: BurstId, now: float) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none."""
        left = self._remains(burst_id) if is_name(burst_id) else []
        if not left:
            raise NotFound(
                f"nothing of {burst_id} is left in namespace {self._settings.namespace}"
            )
        if self._parent == MINICLUSTER:
            alone = all(item["kind"] == SECRET.name for item in left)
            if not (alone and self._is_settled(left[0], now)):
                left = [item for item in left if item["kind"] != SECRET.name]
        for item in self._deletable(left):
            if not is_ending(item):
                waits = item["kind"] == JOB.name
                self._cluster.delete(item, "Foreground" if waits else "Background")

    def _remains(self, burst_id: BurstId) -> list[Manifest]:
        """Return the objects that a burst still has, by its labels and by its name.

        A proxy may answer a list from its cache, and an object that is missed costs
        on. Objects that the operator makes lack our labels.
        """
        left = find_ours(self._cluster, self._settings, self._tags.labels(burst_id))
        listed = {(item["kind"], name_of(item)) for item in left}
        for kind, name in self._names(burst_id):
            known = may_exist(self._cluster, self._settings, kind)
            if (kind.name, name) in listed or not known:
                continue
            item = self._cluster.get(
                kind, self._settings.namespace, name, metadata_only=True
            )
            if item is None:
                continue
            own = self._tags.own(item)
            if kind == self._parent and not own:
                return left  # another owner's burst, as are its children
            if own or _made_for(item, burst_id):
                left.append(item)
        return left

    def _names(self, name: str) -> list[tuple[Kind, str]]:
        own = [(self._parent, name), (SECRET, name)]
        if self._parent == JOB:
            return [*own, (CONFIG_MAP, name), (SERVICE, name)]
        return [*own, (JOB, name), (SERVICE, name), (CONFIG_MAP, f"{name}-entrypoint")]

    def _deletable(self, left: list[Manifest]) -> list[Manifest]:
        """Return what to delete: parents first, which their children go with."""
        parents = [item for item in left if item["kind"] == self._parent.name]
        if parents:
            children = (self._parent.name, JOB.name, POD.name)
            left = [*parents, *(i for i in left if i["kind"] not in children)]
        return [item for item in left if self._tags.own(item)]

    def _is_settled(self, secret: Manifest, now: float) -> bool:
        """Return whether the Secret was alone for `settle`; write since when it is."""
        since = annotations_of(secret).get(ALONE_SINCE)
        if since is not None:
            return now - float(since) >= self._settings.settle
        noted = {**annotations_of(secret), ALONE_SINCE: f"{now:.3f}"}
        # Without its content, which is not needed any more; by its uid.
        meta = secret["metadata"]
        meta = {key: meta[key] for key in ("name", "namespace", "uid")}
        meta |= {"labels": labels_of(secret), "annotations": noted}
        emptied = {"apiVersion": SECRET.api, "kind": SECRET.name, "metadata": meta}
        self._cluster.apply(emptied)
        return False


def _made_for(manifest: Manifest, burst_id: BurstId) -> bool:
    """Return whether the operator made it for the MiniCluster of this burst."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return any(
        (owner["kind"], owner["name"]) == (MINICLUSTER.name, burst_id)
        for owner in owners
    )
