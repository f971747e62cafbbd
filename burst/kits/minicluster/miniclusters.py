# SPDX-License-Identifier: MIT
"""Bursts as pods of one cluster: what kube, kind, gke and others' plugins are made of.

    class MyProvider:
        Settings = MySettings               # derives from MiniClusterSettings

        def __init__(self, name, settings, owner):
            cluster = Cluster(Endpoint(url, authority, token))
            self._bursts = MiniClusters(cluster, settings, Tags(owner, name))

        def offers(self): return offers(self._settings)
        def provision(self, spec): self._bursts.provision(spec)
        def observe(self): return self._bursts.observe()
        def reap(self, burst_id): self._bursts.reap(burst_id)
        def examine(self, lead): return self._bursts.examine(lead)

Where the cluster itself is made on request, do that in `provision` first, raising
Transient until it is there, and in `reap` delete it once this `reap` raises NotFound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from burst.errors import NotFound, ProviderError, Refused, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import (
    CONFIG_MAP,
    JOB,
    KINDS,
    MINICLUSTER,
    POD,
    SECRET,
    SERVICE,
    Kind,
    Manifest,
    annotations_of,
    is_ending,
    name_of,
)
from burst.kits.minicluster.examine import examine_cluster
from burst.kits.minicluster.names import ID, SPEC, Tags, is_name, spec_hash
from burst.kits.minicluster.render import render
from burst.kits.minicluster.settings import MiniClusterSettings
from burst.kits.minicluster.status import (
    Found,
    Warnings,
    describe,
    followers,
    group,
    latest_warnings,
)
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Phase

# Of these only names and labels are read: a Secret's content stays where it is.
_BY_NAME_ONLY = (CONFIG_MAP, SECRET, SERVICE)


class MiniClusters:
    """All bursts of one provider of one owner in one namespace of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        settings: MiniClusterSettings,
        tags: Tags,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._namespace = settings.namespace
        self._tags = tags
        self._clock = clock
        operator = settings.form == "operator"
        self._parent = MINICLUSTER if operator else JOB
        self._kinds = (*((MINICLUSTER,) if operator else ()), JOB, POD, *_BY_NAME_ONLY)

    def provision(self, spec: BurstSpec) -> None:
        """Make those objects of the burst that are not there."""
        objects = render(spec, self._settings, self._tags, self._clock())
        # The last first: while that one is going, nothing is to be made.
        missing = [m for m in reversed(objects) if not self._exists(m, spec)]
        for manifest in reversed(missing):
            self._cluster.apply(manifest)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which any object is there, one list a kind."""
        found = group(self._list(self._tags.labels()))
        warnings = self._warnings(found)
        return [
            describe(
                burst,
                warnings,
                self._last_words(burst),
                self._settings.schedule,
                self._clock(),
            )
            for burst in found
        ]

    def reap(self, burst_id: BurstId) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none."""
        left = self._remains(burst_id) if is_name(burst_id) else []
        if not left:
            raise NotFound(
                f"nothing of {burst_id} is left in namespace {self._namespace}"
            )
        parents = [item for item in left if item["kind"] == self._parent.name]
        for item in self._deletable(left, parents):
            # A Job stays until its pods are gone, and so is what is left of them. The
            # operator however makes children anew for as long as a MiniCluster is
            # there, so one that waited for them would be there for ever.
            waits = item["kind"] == JOB.name
            if not is_ending(item):
                self._cluster.delete(item, "Foreground" if waits else "Background")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at the cluster, our rights in it, the image and the lead's address."""
        return list(examine_cluster(self._cluster, self._settings, self._kinds, lead))

    def _exists(self, manifest: Manifest, spec: BurstSpec) -> bool:
        """Tell whether the object is there. Raises if it is not this burst's."""
        kind, name = KINDS[manifest["kind"]], name_of(manifest)
        there = self._cluster.get(kind, self._namespace, name, metadata_only=True)
        if there is None:
            return False
        what = f"{kind.name} {name} in namespace {self._namespace}"
        same_burst = self._tags.labels(spec.burst_id).items() <= _labels(there).items()
        if is_ending(there):
            raise Transient(f"{what} is being deleted", "wait for its end")
        if same_burst and annotations_of(there).get(SPEC) == spec_hash(spec):
            return True
        if same_burst:
            raise Refused(f"{what} is there with other hosts", "reap it first")
        if self._tags.own(there):
            raise Transient(f"{what} is there of {_labels(there).get(ID)}", "wait")
        raise Refused(
            f"{what} is there and not ours",
            "another daemon may have made it: give each a namespace of its own",
        )

    def _list(self, labels: dict[str, str]) -> list[Manifest]:
        return [
            item
            for kind in self._kinds
            for item in self._cluster.find(
                kind, self._namespace, labels, metadata_only=kind in _BY_NAME_ONLY
            )
        ]

    def _remains(self, burst_id: BurstId) -> list[Manifest]:
        """Return what is left of a burst, by its labels and by its name.

        A list may be from a cache of something between us and the API server, and
        money hangs on this one; and what the operator makes lacks our labels.
        """
        left = self._list(self._tags.labels(burst_id))
        listed = {(item["kind"], name_of(item)) for item in left}
        for kind, name in self._names(burst_id):
            if (kind.name, name) in listed:
                continue
            item = self._cluster.get(kind, self._namespace, name, metadata_only=True)
            if item is None:
                continue
            own = self._tags.own(item)
            if kind == self._parent and not own:
                return left  # another owner's burst, and so are its children
            if own or _made_for(item, burst_id):
                left.append(item)
        return left

    def _names(self, name: str) -> list[tuple[Kind, str]]:
        own = [(self._parent, name), (SECRET, name), (CONFIG_MAP, name)]
        if self._parent is not MINICLUSTER:
            return own
        return [*own, (JOB, name), (SERVICE, name), (CONFIG_MAP, f"{name}-entrypoint")]

    def _deletable(
        self, left: list[Manifest], parents: list[Manifest]
    ) -> list[Manifest]:
        """Return what is ours to delete; what has a parent goes with it."""
        if parents:
            left = [item for item in left if item["kind"] not in (JOB.name, POD.name)]
            left = [*parents, *(item for item in left if item not in parents)]
        return [item for item in left if self._tags.own(item)]

    def _warnings(self, found: Sequence[Found]) -> Warnings:
        """Ask for events only where something is missing: there may be many."""
        said = [word for b in found for word, _ in followers(b).values()]
        if all(word.phase is Phase.RUNNING for word in said):
            return {}
        events = [
            event
            for kind in (JOB, POD)
            for event in self._cluster.events(self._namespace, kind)
        ]
        return latest_warnings(events)

    def _last_words(self, burst: Found) -> dict[str, str]:
        """Return the end of one log that explains why a broker ended."""
        for word, pod in followers(burst).values():
            if word.crashed:
                return {pod: self._tail(pod)}
        return {}

    def _tail(self, pod: str) -> str:
        try:
            return self._cluster.tail(self._namespace, pod) or "it said nothing"
        except ProviderError as error:
            # The node may be gone. All else that was seen is still true.
            return f"its log cannot be read: {error.what}"


def _labels(manifest: Manifest) -> dict[str, str]:
    return manifest["metadata"].get("labels") or {}


def _made_for(manifest: Manifest, burst_id: BurstId) -> bool:
    """Tell whether the operator made it for the MiniCluster of this burst."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return any(
        (owner["kind"], owner["name"]) == (MINICLUSTER.name, burst_id)
        for owner in owners
    )
