# SPDX-License-Identifier: MIT
"""The Kubernetes side of a burst: pods by the kit, and the operator where wished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from burst.kits.kube import Cluster, Kind
from burst.kits.kube.manifests import read_manifests
from burst.kits.minicluster import MiniClusters, Tags
from burst.kits.minicluster.render import render
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus
from burst_gke.settings import GkeSettings

_NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)


class Followers(Protocol):
    """What is needed of Kubernetes: the bursts of one provider in one cluster."""

    def provision(self, spec: BurstSpec) -> None:
        """Make the burst's objects, or those that are missing."""
        ...

    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst of which there is any object."""
        ...

    def reap(self, burst_id: BurstId) -> None:
        """Delete the objects; NotFound once there is none."""
        ...

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at the cluster, and at our rights in it."""
        ...

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Have a pod try whether it reaches the lead's address."""
        ...


class Pods(MiniClusters):
    """MiniClusters in a cluster that may be new, and lack their namespace."""

    def __init__(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> None:
        super().__init__(cluster, settings, tags)
        self._into = cluster
        self._needs = settings

    def provision(self, spec: BurstSpec) -> None:
        """Make the namespace if the cluster is the burst's own, then the objects."""
        name = self._needs.namespace
        if not self._needs.cluster and not self._into.get(_NAMESPACE, "", name):
            meta = {"name": name}
            self._into.apply(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
            )
        super().provision(spec)


def check(spec: BurstSpec, settings: GkeSettings, tags: Tags, now: float) -> None:
    """Raise Refused if pods could not be made of this, in whatever cluster."""
    render(spec, settings, tags, now)
    if settings.operator_yaml:
        read_manifests(Path(settings.operator_yaml))
