# SPDX-License-Identifier: MIT
"""Makes the objects of a burst, all owned by the one that makes the pods.

The owner is made first, so that nothing exists without it: whoever deletes the Job, be
it `kubectl delete job`, the end of its lease or the daemon, deletes the Secret too. A
Job is suspended until it owns all that its pods mount, and is then started. A
MiniCluster cannot be; its pods wait some milliseconds for the Secret.

A Secret is only created, never read, listed or deleted: no other verb is needed on
Secrets, so who has the daemon's rights reads no Secret of the namespace.

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
    """The burst exists, with other hosts than those of the spec."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} exists with other hosts", "reap it first")


class Creator:
    """Makes bursts of one owner in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, tags: Tags) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._tags = tags

    def create(self, objects: Sequence[Manifest], spec: BurstSpec) -> None:
        """Make those objects, of `render`, that do not exist.

        It can be repeated at any point. Raises Transient, SpecRefused, Refused and
        InsufficientCapacity.
        """
        *others, parent = objects
        found = self._find(parent, spec)
        if found is None:
            # Before anything is made: another daemon may use one of the names.
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
        """Create the object with its owner, unless that was done before."""
        if self._cluster.create(owned_by(manifest, owner)):
            return
        if manifest["kind"] == SECRET.name:
            return  # it cannot be read; only this burst has its name
        found = self._look(manifest, spec)
        owners = found["metadata"].get("ownerReferences") or [] if found else []
        if not any(known["uid"] == owner["metadata"]["uid"] for known in owners):
            raise Transient(
                f"{self._name(manifest)} exists, of a burst that was deleted",
                "wait for its end",
            )

    def _start(self, job: Manifest, rendered: Manifest) -> None:
        """Let the Job make its pods, and note that this was done once.

        One with a queue of Kueue is started by Kueue, once the queue has quota.
        """
        seconds = rendered["spec"].get("activeDeadlineSeconds")
        # Anew: some of the lease may have passed since the Job was made.
        change: Manifest = {"activeDeadlineSeconds": seconds} if seconds else {}
        if KUEUE_QUEUE not in labels_of(job):
            change["suspend"] = False
        noted = {"annotations": {STARTED: "true"}}
        self._cluster.merge(job, {"metadata": noted, "spec": change})

    def _find(self, manifest: Manifest, spec: BurstSpec) -> Manifest | None:
        """As `_look`. Raises OtherHosts if it was made for others."""
        there = self._look(manifest, spec)
        if there is not None and annotations_of(there).get(SPEC) != spec_hash(spec):
            raise OtherHosts(self._name(manifest))
        return there

    def _look(self, manifest: Manifest, spec: BurstSpec) -> Manifest | None:
        """Return the object's metadata. Raises if it is not this burst's.

        What a Job or MiniCluster owns has the hosts of before a shrink.
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
                f"{what} exists, of {labels_of(there).get(ID)}", "wait for its end"
            )
        return there

    def _name(self, manifest: Manifest) -> str:
        return f"{manifest['kind']} {name_of(manifest)} in namespace {self._namespace}"


def owned_by(manifest: Manifest, owner: Manifest) -> Manifest:
    """Return an object to be made with its owner, with which it is deleted."""
    meta = {**manifest["metadata"], "ownerReferences": [_reference(owner)]}
    return {**manifest, "metadata": meta}


def _reference(owner: Manifest) -> Manifest:
    """Return what makes Kubernetes delete an object with its owner, and before it.

    A foreground deletion of the owner waits for all that block it, so once the owner is
    gone so is the Secret, of which the daemon could not know otherwise.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
