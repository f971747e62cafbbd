# SPDX-License-Identifier: MIT
"""The Kubernetes side of a burst: pods by the kit, and the operator where wished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from burst.errors import ConfigError, Refused
from burst.kits.kube import Cluster, Manifest
from burst.kits.kube.install import install, read_manifests
from burst.kits.minicluster import MiniClusters, Tags
from burst.kits.minicluster.render import render
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus
from burst_gke.settings import GkeSettings


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


class Pods(MiniClusters):
    """MiniClusters in a cluster that may be new: without namespace and operator."""

    def __init__(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> None:
        super().__init__(cluster, settings, tags)
        self._into = cluster
        self._needs = settings

    def provision(self, spec: BurstSpec) -> None:
        """Make what the objects rest on, where that is wished, and then the objects."""
        if not self._needs.cluster:
            install(self._into, [_namespace(self._needs.namespace)])
        if self._needs.operator_yaml:
            install(self._into, _operator(self._needs))
        super().provision(spec)


def check(spec: BurstSpec, settings: GkeSettings, tags: Tags, now: float) -> None:
    """Raise Refused if pods could not be made of this, in whatever cluster."""
    render(spec, settings, tags, now)
    if settings.operator_yaml:
        _operator(settings)


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _operator(settings: GkeSettings) -> list[Manifest]:
    try:
        return read_manifests(Path(settings.operator_yaml))
    except ConfigError as error:
        raise Refused(error.what, error.advice) from error
