# SPDX-License-Identifier: MIT
"""Makes the objects of a burst. The Job or MiniCluster owns all others.

The owner is made first, so that no other object exists without it: whoever deletes the
Job (`kubectl delete job`, the end of its lease, or the daemon) deletes the Secret too.
A Job is suspended until it owns all that its pods mount, and is then started. A
MiniCluster cannot be suspended; its pods wait some milliseconds for the Secret.

A Secret is only created, never read, listed or deleted. No other verb on Secrets is
needed, so with the daemon's rights nobody can read the Secrets of the namespace.

Source: the Kubernetes documentation, "Garbage Collection" and "Suspending a Job".
"""

from __future__ import annotations

from collections.abc import Sequence

from burst.errors import SpecRefused, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import (
    JOB,
    KINDS,
    MINICLUSTER,
    SECRET,
    Manifest,
    annotations_of,
    is_ending,
    labels_of,
    name_of,
)
from burst.kits.pods.names import (
    ALONE_SINCE,
    ID,
    KUEUE_QUEUE,
    SPEC,
    STARTED,
    Tags,
    spec_hash,
)
from burst.provider import BurstSpec


class OtherHosts(SpecRefused):
    """The burst exists, but with other hosts than the spec has."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} exists with other hosts", "reap it first")


class Creator:
    """Makes the bursts of one owner in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, tags: Tags) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._tags = tags

    def create(self, objects: Sequence[Manifest], spec: BurstSpec) -> None:
        """Make the objects that do not exist; `objects` is what `render` returns.

        After an error it can be called again. Raises Transient, SpecRefused, Refused
        and InsufficientCapacity.
        """
        *others, parent = objects
        found = self._find(parent, spec)
        if found is None:
            # Check first, before anything is made: another daemon may use a name.
            for other in others:
                if other["kind"] != SECRET.name:
                    self._find(other, spec)
        elif STARTED in annotations_of(found):
            return
        if parent["kind"] == MINICLUSTER.name:
            marker, *others = others
            self._cluster.create(marker)
        if found is None:
            found = self._cluster.create(parent)
        if found is None:
            what = self._name(parent)
            raise Transient(f"{what} was made meanwhile", "wait for the next call")
        for other in others:
            self._create_owned(other, found, spec)
        if parent["kind"] == JOB.name:
            self._start(found, parent)

    def _create_owned(
        self, manifest: Manifest, owner: Manifest, spec: BurstSpec
    ) -> None:
        """Create the object with its owner, unless it exists with this owner.

        Raises Transient if it exists with another owner.
        """
        if self._cluster.create(owned_by(manifest, owner)):
            return
        if manifest["kind"] == SECRET.name:
            return  # it cannot be read to check, but only this burst uses its name
        found = self._look(manifest, spec)
        owners = found["metadata"].get("ownerReferences") or [] if found else []
        if not any(known["uid"] == owner["metadata"]["uid"] for known in owners):
            raise Transient(
                f"{self._name(manifest)} still exists, from a burst that was deleted",
                "wait for its end",
            )

    def _start(self, job: Manifest, rendered: Manifest) -> None:
        """Let the Job make its pods, and note this in an annotation.

        A Job in a queue of Kueue is started by Kueue, once the queue has quota.
        """
        seconds = rendered["spec"].get("activeDeadlineSeconds")
        # Set it again: part of the lease may have passed since the Job was made.
        change: Manifest = {"activeDeadlineSeconds": seconds} if seconds else {}
        if KUEUE_QUEUE not in labels_of(job):
            change["suspend"] = False
        noted = {"annotations": {STARTED: "true"}}
        self._cluster.merge(job, {"metadata": noted, "spec": change})

    def _find(self, manifest: Manifest, spec: BurstSpec) -> Manifest | None:
        """As `_look`, but raise OtherHosts if it was made for other hosts."""
        there = self._look(manifest, spec)
        if there is not None and annotations_of(there).get(SPEC) != spec_hash(spec):
            raise OtherHosts(self._name(manifest))
        return there

    def _look(self, manifest: Manifest, spec: BurstSpec) -> Manifest | None:
        """Return the object's metadata; None if it does not exist.

        Raises SpecRefused or Transient if it is not of this burst. The hosts are not
        compared, as objects that a Job or MiniCluster owns keep the hosts from before a
        shrink.
        """
        kind, name = KINDS[manifest["kind"]], name_of(manifest)
        there = self._cluster.get(kind, self._namespace, name, metadata_only=True)
        if there is None:
            return None
        what = self._name(manifest)
        if not self._tags.own(there):
            raise SpecRefused(
                f"{what} exists and is not ours",
                "another daemon may have made it: give each its own namespace",
            )
        if is_ending(there) or ALONE_SINCE in annotations_of(there):
            raise Transient(f"{what} is being deleted", "wait for its end")
        if labels_of(there).get(ID) != spec.burst_id:
            raise Transient(
                f"{what} exists, and belongs to {labels_of(there).get(ID)}",
                "wait for its end",
            )
        return there

    def _name(self, manifest: Manifest) -> str:
        return f"{manifest['kind']} {name_of(manifest)} in namespace {self._namespace}"


def owned_by(manifest: Manifest, owner: Manifest) -> Manifest:
    """Return the object with a reference to its owner, with which it is deleted."""
    meta = {**manifest["metadata"], "ownerReferences": [_reference(owner)]}
    return {**manifest, "metadata": meta}


def _reference(owner: Manifest) -> Manifest:
    """Return the owner reference that makes Kubernetes delete an object with its owner.

    As it blocks the owner's foreground deletion, the Secret is gone once the owner is
    gone. The daemon cannot check this otherwise, as it may not read Secrets.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
