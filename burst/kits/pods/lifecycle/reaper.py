# SPDX-License-Identifier: MIT
"""Deletes bursts, and confirms that nothing of a burst is left.

A Job is deleted in the foreground: it exists until its pods and all that it owns are
gone. A MiniCluster cannot be deleted so: its operator makes children again while it
exists, so it would wait for ever. An operator that read the MiniCluster just before its
end may even make children afterwards, which Kubernetes deletes as their owner is gone.
So the marker of the burst, a ConfigMap, is deleted last: some time after all other
objects, and not before the Secret.

A burst keeps the form that it was made with, also if `form` of the settings was changed
since: the owner of its Job tells that it is a MiniCluster, or a marker. Its Job must
not be deleted alone, as the operator would make the Job again.
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.errors import InsufficientCapacity, NotFound, Refused
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.faults import NoOperator, NoRight
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
from burst.kits.pods.lifecycle.stuck_pods import delete_stuck
from burst.kits.pods.names import (
    ALONE_SINCE,
    HOSTS,
    JOB_NAME,
    LEAVING,
    Tags,
    first_of,
    is_name,
)
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.kept_object import kept
from burst.model.burst import BurstId

SETTLE_S = 2.0
"""Seconds without any object until a MiniCluster counts as deleted. Until then the
operator may still make children of a MiniCluster that it has read."""

_OPERATOR_KINDS = MINICLUSTER, JOB, POD, CONFIG_MAP, SERVICE
METADATA_ONLY = CONFIG_MAP, SERVICE
"""Kinds whose objects are read without their content, as it is not needed."""


def kinds_of(settings: PodSettings) -> tuple[Kind, ...]:
    """Return the kinds to list; the first one owns all others.

    After a Job is gone, only pods that are ending may be left, if it was deleted in the
    background. After a MiniCluster is gone, other kinds may be left too, as the
    operator may still make them.
    """
    return _OPERATOR_KINDS if settings.form == "operator" else (JOB, POD)


def find_ours(
    cluster: Cluster,
    settings: PodSettings,
    labels: dict[str, str],
    kinds: Iterable[Kind] = (),
) -> list[Manifest]:
    """Return all objects with these labels, with one list request for each kind.

    `kinds` are by default those of the form in the settings.
    """
    return [
        item
        for kind in kinds or kinds_of(settings)
        if may_exist(cluster, settings, kind)
        for item in cluster.find(
            kind, settings.namespace, labels, metadata_only=kind in METADATA_ONLY
        )
    ]


def may_exist(cluster: Cluster, settings: PodSettings, kind: Kind) -> bool:
    """Return whether objects of the kind can exist.

    No MiniCluster can exist before the operator of `operator_yaml` is installed.
    Without `operator_yaml` a missing kind is an error, which the list request raises.
    """
    ours_to_bring = kind == MINICLUSTER and bool(settings.operator_yaml)
    return not ours_to_bring or cluster.serves(kind)


class Reaper:
    """Deletes the objects of one provider of one owner."""

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        tags: Tags,
        kinds: tuple[Kind, ...] = (),
    ) -> None:
        """`kinds` are by default those of the form in the settings."""
        self._cluster = cluster
        self._settings = settings
        self._tags = tags
        self._kinds = kinds or kinds_of(settings)
        self._parent = self._kinds[0]

    def reap(self, burst_id: BurstId, now: float, *, force: bool = False) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none.

        With `force`, do not wait for the kubelets of pods that are being deleted.
        """
        left = self._remains(burst_id) if is_name(burst_id) else []
        if self._parent == JOB and self._is_minicluster(burst_id, left):
            whole = Reaper(self._cluster, self._settings, self._tags, _OPERATOR_KINDS)
            whole.reap(burst_id, now, force=force)
            return
        if not left:
            raise NotFound(
                f"nothing of {burst_id} is left in namespace {self._settings.namespace}"
            )
        self._delete(left, now, force=force)

    def reap_part(self, burst_id: BurstId, name: str, now: float) -> None:
        """Delete the part of this name, which a growth has added, or go on deleting."""
        left = [i for i in self._remains(burst_id) if name in _parts_of(i)]
        for marker in filter(self._is_marker, left):
            if LEAVING not in annotations_of(marker):
                # The note keeps the hosts listed until all that the operator made is
                # gone.
                noted = {LEAVING: annotations_of(marker).get(HOSTS, "")}
                self._cluster.merge(marker, {"metadata": {"annotations": noted}})
        self._delete(left, now)

    def _delete(self, left: list[Manifest], now: float, *, force: bool = False) -> None:
        if self._parent == MINICLUSTER:
            markers = [item for item in left if self._is_marker(item)]
            alone = len(left) == len(markers)
            if [m for m in markers if not (alone and self._is_settled(m, now))]:
                left = [item for item in left if item not in markers]
        for item in self._deletable(left):
            if not is_ending(item):
                waits = item["kind"] == JOB.name
                self._cluster.delete(item, "Foreground" if waits else "Background")
        ours = filter(self._tags.own, left)
        pods = (kept(item) for item in ours if item["kind"] == POD.name)
        delete_stuck(self._cluster, self._settings.namespace, pods, now, force=force)

    def _remains(self, burst_id: BurstId) -> list[Manifest]:
        """Return the objects that a burst still has, found by labels and by name.

        They are also read by name, as a proxy may answer a list from its cache, and an
        object that was missed would not be deleted. Also, objects that the operator
        makes do not have our labels.
        """
        try:
            return self._read(burst_id, self._kinds)
        except NoOperator:
            if self._cluster.has_group(MINICLUSTER.group):
                raise  # only this version of it is missing
            # The CRD was deleted, and all MiniClusters with it.
            return self._read(burst_id, self._kinds[1:])

    def _read(self, burst_id: BurstId, kinds: tuple[Kind, ...]) -> list[Manifest]:
        labels = self._tags.labels(burst_id)
        left = find_ours(self._cluster, self._settings, labels, kinds)
        listed = {(item["kind"], name_of(item)) for item in left}
        ours = [item for item in left if self._tags.own(item)]
        named = {name for item in ours for name in _parts_of(item)}
        parts = {burst_id, *(name for name in named if first_of(burst_id, name))}
        for part in sorted(parts):
            for kind, name in self._names(part):
                known = may_exist(self._cluster, self._settings, kind)
                if (kind.name, name) in listed or kind not in kinds or not known:
                    continue
                item = self._cluster.get(
                    kind, self._settings.namespace, name, metadata_only=kind != JOB
                )
                if item is None:
                    continue
                item, own = self._with_labels(item)
                if kind == self._parent and not own:
                    break  # it and its children are another owner's
                if own or made_for(item, part):
                    left.append(item)
        return left

    def _with_labels(self, item: Manifest) -> tuple[Manifest, bool]:
        """Return an object with our labels, and whether it is ours.

        A person may have removed labels from it. The labels in a Job's pod template
        cannot be changed, so a Job is recognized by them.
        """
        template = (item.get("spec") or {}).get("template") or {"metadata": {}}
        ours = self._parent == JOB and self._tags.own(template)
        if self._tags.own(item) or not ours:
            return item, self._tags.own(item)
        labels = {**labels_of(item), **self._tags.labels()}
        meta = {**item["metadata"], "labels": labels}
        return {**item, "metadata": meta}, True

    def _names(self, name: str) -> list[tuple[Kind, str]]:
        if self._parent == JOB:
            return [(JOB, name)]
        kinds = MINICLUSTER, JOB, CONFIG_MAP, SERVICE
        return [*((kind, name) for kind in kinds), (CONFIG_MAP, f"{name}-entrypoint")]

    def _is_minicluster(self, burst_id: BurstId, left: list[Manifest]) -> bool:
        """Return whether the burst was made as a MiniCluster, which owns its Jobs.

        Without a Job, as before the operator has made it, the marker tells. The
        ConfigMap of a Job has data, and may have lost its owner.
        """
        if not is_name(burst_id):
            return False
        jobs = [item for item in left if item["kind"] == JOB.name]
        if jobs:
            return any(made_for(job, name_of(job)) for job in jobs)
        try:
            found = self._cluster.get(CONFIG_MAP, self._settings.namespace, burst_id)
        except NoRight:
            return False  # who makes or deletes MiniClusters has this right
        return found is not None and self._is_marker(found) and not found.get("data")

    def _is_marker(self, item: Manifest) -> bool:
        return item["kind"] == CONFIG_MAP.name and self._tags.own(item)

    def _deletable(self, left: list[Manifest]) -> list[Manifest]:
        """Return what to delete, parents first; their Jobs and pods go with them."""
        parents = [item for item in left if item["kind"] == self._parent.name]
        if parents:
            children = (self._parent.name, JOB.name, POD.name)
            left = [*parents, *(i for i in left if i["kind"] not in children)]
        return [item for item in left if self._tags.own(item)]

    def _is_settled(self, marker: Manifest, now: float) -> bool:
        """Return whether the marker has been the only object left for SETTLE_S.

        If the marker has no time yet, write the present time into it; also if it has
        one in the future, as by a clock that was set back, or by another host's.
        """
        since = annotations_of(marker).get(ALONE_SINCE)
        if since is not None and float(since) <= now:
            return now - float(since) >= SETTLE_S and not self._has_secret(marker)
        noted = {"annotations": {ALONE_SINCE: f"{now:.3f}"}}
        self._cluster.merge(marker, {"metadata": noted})
        return False

    def _has_secret(self, marker: Manifest) -> bool:
        """Return whether the Secret beside the marker exists, as far as can be known.

        Kubernetes deletes it some time after the MiniCluster. It cannot be listed, so a
        dry run of its creation tells.
        """
        meta = {key: marker["metadata"][key] for key in ("namespace", "name", "labels")}
        secret = {"apiVersion": SECRET.api, "kind": SECRET.name, "metadata": meta}
        try:
            return self._cluster.is_there(secret)
        except (InsufficientCapacity, Refused):
            return False  # no right to create, or a rule or a quota answered first


def _parts_of(manifest: Manifest) -> set[str]:
    """Return the names of parts that an object may belong to: its own, its owners'."""
    owners = manifest["metadata"].get("ownerReferences") or []
    job = labels_of(manifest).get(JOB_NAME, "")
    return {name_of(manifest), job, *(owner["name"] for owner in owners)}


def made_for(manifest: Manifest, name: str) -> bool:
    """Return whether the operator made an object for the MiniCluster of this name."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return any(
        (owner["kind"], owner["name"]) == (MINICLUSTER.name, name) for owner in owners
    )
