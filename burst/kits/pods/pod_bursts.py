# SPDX-License-Identifier: MIT
"""Bursts as pods of one cluster, for all providers whose followers are pods.

    class MyProvider(PodProvider):
        Settings = MySettings               # derives from PodSettings

        def __init__(self, name, settings, owner):
            super().__init__(name, settings, owner)
            cluster = Cluster(Endpoint(url, authority, token))
            self._bursts = PodBursts(cluster, settings, self.tags)

        def bursts(self): return self._bursts

If the provider also makes the cluster, `provision` makes it first and raises Transient
until it exists. `reap` deletes it once `PodBursts.reap` raises NotFound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from burst.errors import ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import NAMESPACE, POD, Manifest, name_of
from burst.kits.kube.manifests import install
from burst.kits.pods.containers import container_of
from burst.kits.pods.creator import Creator
from burst.kits.pods.examine import examine_cluster
from burst.kits.pods.isolated_status import (
    describe_instance,
    exit_status_of,
    failed_pod,
    lead_pod,
    program_of,
)
from burst.kits.pods.join_logs import JoinLogs
from burst.kits.pods.names import Tags
from burst.kits.pods.owned import list_owned
from burst.kits.pods.probe import Probe
from burst.kits.pods.read_events import read_warnings
from burst.kits.pods.reaper import Reaper, find_ours
from burst.kits.pods.render import render
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status import (
    BurstObjects,
    describe,
    followers,
    group_by_burst,
)
from burst.kits.pods.warnings import Warnings
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, OwnedBurst

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
        self.cluster = cluster
        """The connection."""
        self._settings = settings
        self._namespace = settings.namespace
        self._tags = tags
        self._clock = clock
        self._unread: dict[BurstId, int] = {}
        self._join_logs = JoinLogs(self._tail)
        self._creator = Creator(cluster, settings.namespace, tags)
        self._reaper = Reaper(cluster, settings, tags)
        self._has_namespace = not own_cluster
        self._has_operator = settings.form != "operator" or not settings.operator_yaml

    def provision(self, spec: BurstSpec) -> None:
        """Make those objects of the burst that do not exist."""
        objects = render(spec, self._settings, self._tags, self._clock())
        if not self._has_namespace:
            self._make_namespace()
        if not self._has_operator:
            install(self.cluster, Path(self._settings.operator_yaml))
            self._has_operator = True
        self._creator.create(objects, spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have an object, by one list for each kind."""
        labels = self._tags.labels()
        found = group_by_burst(find_ours(self.cluster, self._settings, labels))
        words = [word for burst in found for word, _ in followers(burst).values()]
        warnings = read_warnings(self.cluster, self._namespace, words)
        pods = [
            pod
            for burst in found
            if not burst.ending and not program_of(burst)
            for pod in burst.of(POD.name)
        ]
        joining = self._join_logs.read(pods, self._clock())
        return [self._describe(burst, warnings, joining) for burst in found]

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the namespace."""
        return list_owned(self.cluster, self._settings)

    def reap(self, burst_id: BurstId) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none."""
        self._reaper.reap(burst_id, self._clock())

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but delete pods that do not end; see `Forced`."""
        self._reaper.reap(burst_id, self._clock(), force=True)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the cluster, our rights in it, the image and the lead's address."""
        found = examine_cluster(
            self.cluster, self._settings, lead, has_namespace=self._has_namespace
        )
        return list(found)

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Run a pod that tries to connect to the lead; see `Probed`."""
        return Probe(self.cluster, self._settings, self._tags).run(lead, tell)

    def _make_namespace(self) -> None:
        if not self.cluster.get(NAMESPACE, "", self._namespace):
            meta = {"name": self._namespace}
            kind = {"apiVersion": NAMESPACE.api, "kind": NAMESPACE.name}
            self.cluster.apply({**kind, "metadata": meta})
        self._has_namespace = True

    def _describe(
        self, burst: BurstObjects, warnings: Warnings, joining: Mapping[str, str]
    ) -> BurstStatus:
        schedule = self._settings.schedule
        isolated = bool(program_of(burst))
        logs = {} if isolated else {**joining, **self._crash_logs(burst)}
        status = describe(burst, warnings, logs, schedule, self._clock())
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
            return self._tail(failed) if failed is not None else ""
        container = container_of(lead).get("name", "")
        try:
            return self.cluster.log(self._namespace, name_of(lead), container)
        except ProviderError as error:
            self._unread[burst.id] = self._unread.get(burst.id, 0) + 1
            if self._unread[burst.id] < _LOOKS:
                return None
            return f"its log cannot be read: {error.what}\n"

    def _crash_logs(self, burst: BurstObjects) -> dict[str, str]:
        """Return the end of one log, by pod, that explains why a broker ended."""
        pods = {name_of(pod): pod for pod in burst.of(POD.name)}
        for word, name in followers(burst).values():
            if word.crashed:
                return {name: self._tail(pods[name])}
        return {}

    def _tail(self, pod: Manifest) -> str:
        name, container = name_of(pod), container_of(pod).get("name", "")
        try:
            found = self.cluster.tail(self._namespace, name, container)
        except ProviderError as error:
            # The node may be gone. The rest of the status is still reported.
            return f"its log cannot be read: {error.what}"
        return found or "its log is empty"
