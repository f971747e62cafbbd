# SPDX-License-Identifier: MIT
"""Takes bursts down, and knows when nothing of one is left.

A Job is deleted in the foreground: it stays until its pods are gone, so it tells of
them. A MiniCluster cannot be: its operator makes children anew for as long as it is
there, so one that waited for them would be there for ever. And an operator that read it
a moment before its end makes children after that, which Kubernetes collects as it finds
their owner gone. So the Secret goes last there, some time after all else was.
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
# Of these only names and labels are read: a Secret's content stays where it is.
_BY_NAME_ONLY = CONFIG_MAP, SECRET, SERVICE


def kinds_of(settings: PodSettings) -> tuple[Kind, ...]:
    """Return the kinds of which a burst may have objects; first what is made last."""
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
    """Tell whether there can be objects of the kind.

    Before an operator that we are to install is there, none of its kind can. Where
    somebody else should have, its absence is a mistake that the caller hears of.
    """
    ours_to_bring = kind == MINICLUSTER and bool(settings.operator_yaml)
    return not ours_to_bring or cluster.serves(kind)


class Reaper:
    """Deletes what one provider of one owner has made."""

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
        """Return what is left of a burst, by its labels and by its name.

        A list may be from a cache of something between us and the API server, and
        money hangs on this one; and what the operator makes lacks our labels.
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
                return left  # another owner's burst, and so are its children
            if own or _made_for(item, burst_id):
                left.append(item)
        return left

    def _names(self, name: str) -> list[tuple[Kind, str]]:
        own = [(self._parent, name), (SECRET, name)]
        if self._parent == JOB:
            return [*own, (CONFIG_MAP, name), (SERVICE, name)]
        return [*own, (JOB, name), (SERVICE, name), (CONFIG_MAP, f"{name}-entrypoint")]

    def _deletable(self, left: list[Manifest]) -> list[Manifest]:
        """Return what is ours to delete, parents first; their children go with them."""
        parents = [item for item in left if item["kind"] == self._parent.name]
        if parents:
            children = (self._parent.name, JOB.name, POD.name)
            left = [*parents, *(i for i in left if i["kind"] not in children)]
        return [item for item in left if self._tags.own(item)]

    def _is_settled(self, secret: Manifest, now: float) -> bool:
        """Tell whether the Secret is what was left for long enough; note since when."""
        since = annotations_of(secret).get(ALONE_SINCE)
        if since is not None:
            return now - float(since) >= self._settings.settle
        noted = {**annotations_of(secret), ALONE_SINCE: f"{now:.3f}"}
        # Without its content, which nothing needs any more, and only this very one.
        meta = secret["metadata"]
        meta = {key: meta[key] for key in ("name", "namespace", "uid")}
        meta |= {"labels": labels_of(secret), "annotations": noted}
        emptied = {"apiVersion": SECRET.api, "kind": SECRET.name, "metadata": meta}
        self._cluster.apply(emptied)
        return False


def _made_for(manifest: Manifest, burst_id: BurstId) -> bool:
    """Tell whether the operator made it for the MiniCluster of this burst."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return any(
        (owner["kind"], owner["name"]) == (MINICLUSTER.name, burst_id)
        for owner in owners
    )
