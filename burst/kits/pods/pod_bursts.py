# SPDX-License-Identifier: MIT
"""Bursts as pods of one cluster, for all providers whose followers are pods.

    class MyProvider(PodProvider):
        Settings = MySettings               # derives from PodSettings

        def __init__(self, name, settings, owner):
            super().__init__(name, settings, owner)
            cluster = Cluster(Endpoint(url, authority, token))
            self._bursts = PodBursts(cluster, settings, self.tags)

        def bursts(self): return self._bursts

Where the cluster itself is made on request, make it first in `provision`, which raises
Transient until it exists. Delete it in `reap` once `PodBursts.reap` raises NotFound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from burst.errors import ProviderError, SpecRefused, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import (
    JOB,
    KINDS,
    NAMESPACE,
    POD,
    Manifest,
    annotations_of,
    is_ending,
    labels_of,
    name_of,
)
from burst.kits.kube.manifests import install
from burst.kits.pods.examine import examine_cluster
from burst.kits.pods.instance import (
    describe_instance,
    exit_status_of,
    failed_pod,
    lead_pod,
    program_of,
)
from burst.kits.pods.names import ALONE_SINCE, ID, SPEC, Tags, spec_hash
from burst.kits.pods.probe import Probe
from burst.kits.pods.reaper import Reaper, find_ours, kinds_of
from burst.kits.pods.render import render
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status import (
    BurstObjects,
    Warnings,
    describe,
    followers,
    group_by_burst,
    latest_warnings,
)
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Phase

# How often the log of a program that has ended is requested. A node may be busy; if the
# node is gone, so is the log.
_LOOKS = 20


class PodBursts:
    """All bursts of one provider of one owner in one namespace of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        tags: Tags,
        *,
        own_cluster: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`own_cluster`: it was made for these bursts, and has no namespace yet."""
        self._cluster = cluster
        self._settings = settings
        self._namespace = settings.namespace
        self._tags = tags
        self._clock = clock
        self._unread: dict[BurstId, int] = {}
        self._reaper = Reaper(cluster, settings, tags)
        self._has_namespace = not own_cluster
        self._has_operator = settings.form != "operator" or not settings.operator_yaml

    def provision(self, spec: BurstSpec) -> None:
        """Make those objects of the burst that do not exist."""
        objects = render(spec, self._settings, self._tags, self._clock())
        if not self._has_namespace:
            self._make_namespace()
        if not self._has_operator:
            install(self._cluster, Path(self._settings.operator_yaml))
            self._has_operator = True
        # The last one first: while it is being deleted, nothing is to be made.
        missing = [m for m in reversed(objects) if not self._exists(m, spec)]
        for manifest in reversed(missing):
            self._cluster.apply(manifest)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have an object, by one list for each kind."""
        labels = self._tags.labels()
        found = group_by_burst(find_ours(self._cluster, self._settings, labels))
        warnings = self._warnings(found)
        return [self._describe(burst, warnings) for burst in found]

    def reap(self, burst_id: BurstId) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none."""
        self._reaper.reap(burst_id, self._clock())

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the cluster, our rights in it, the image and the lead's address."""
        kinds = kinds_of(self._settings)
        return list(examine_cluster(self._cluster, self._settings, kinds, lead))

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Run a pod that tries to connect to the lead; see `Probed`."""
        return [Probe(self._cluster, self._settings, self._tags).run(lead, tell)]

    def _make_namespace(self) -> None:
        if not self._cluster.get(NAMESPACE, "", self._namespace):
            meta = {"name": self._namespace}
            kind = {"apiVersion": NAMESPACE.api, "kind": NAMESPACE.name}
            self._cluster.apply({**kind, "metadata": meta})
        self._has_namespace = True

    def _describe(self, burst: BurstObjects, warnings: Warnings) -> BurstStatus:
        patience = self._settings.schedule
        isolated = bool(program_of(burst))
        logs = {} if isolated else self._crash_logs(burst)
        status = describe(burst, warnings, logs, patience, self._clock())
        if not isolated:
            return status
        return describe_instance(
            burst, status, self._isolated_log(burst), self._settings
        )

    def _isolated_log(self, burst: BurstObjects) -> str | None:
        """Return the log of an isolated burst that has ended or failed; else "".

        None if it has ended and its log cannot be read now. It then counts as running,
        for up to `_LOOKS` more calls.
        """
        lead, failed = lead_pod(burst), failed_pod(burst)
        if lead is None or exit_status_of(burst) is None:
            return self._tail(name_of(failed)) if failed is not None else ""
        try:
            return self._cluster.log(self._namespace, name_of(lead))
        except ProviderError as error:
            self._unread[burst.id] = self._unread.get(burst.id, 0) + 1
            if self._unread[burst.id] < _LOOKS:
                return None
            return f"its log cannot be read: {error.what}\n"

    def _exists(self, manifest: Manifest, spec: BurstSpec) -> bool:
        """Return whether the object exists. Raises if it is not this burst's."""
        kind, name = KINDS[manifest["kind"]], name_of(manifest)
        there = self._cluster.get(kind, self._namespace, name, metadata_only=True)
        if there is None:
            return False
        what = f"{kind.name} {name} in namespace {self._namespace}"
        if not self._tags.own(there):
            raise SpecRefused(
                f"{what} exists and is not ours",
                "another daemon may have made it: give each its own namespace",
            )
        noted = annotations_of(there)
        if is_ending(there) or ALONE_SINCE in noted:
            raise Transient(f"{what} is being deleted", "wait for its end")
        if labels_of(there).get(ID) != spec.burst_id:
            raise Transient(
                f"{what} exists, of {labels_of(there).get(ID)}", "wait for its end"
            )
        if noted.get(SPEC) != spec_hash(spec):
            raise SpecRefused(f"{what} exists with other hosts", "reap it first")
        return True

    def _warnings(self, found: Sequence[BurstObjects]) -> Warnings:
        """Return the last warnings, if a follower does not run: there may be many."""
        said = [word for b in found for word, _ in followers(b).values()]
        if all(word.phase is Phase.RUNNING for word in said):
            return {}
        events = [
            event
            for kind in (JOB, POD)
            for event in self._cluster.events(self._namespace, kind)
        ]
        return latest_warnings(events)

    def _crash_logs(self, burst: BurstObjects) -> dict[str, str]:
        """Return the end of one log, by pod, that explains why a broker ended."""
        for word, pod in followers(burst).values():
            if word.crashed:
                return {pod: self._tail(pod)}
        return {}

    def _tail(self, pod: str) -> str:
        try:
            return self._cluster.tail(self._namespace, pod) or "its log is empty"
        except ProviderError as error:
            # The node may be gone. The rest of the status is still true.
            return f"its log cannot be read: {error.what}"
