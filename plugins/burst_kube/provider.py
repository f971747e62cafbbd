# SPDX-License-Identifier: MIT
"""The kube provider: a burst is a Job or a MiniCluster in a cluster that exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from burst.kits.kube import Cluster, choose_access, server_of
from burst.kits.kube.cluster import REQUEST_S
from burst.kits.pods import PodBursts, PodProvider, PodSettings
from burst.kits.pods.names import pods_command
from burst.model.burst import BurstId


class KubeSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "kube"`."""

    kubeconfig: str = ""
    """Path of the kubeconfig file; default: KUBECONFIG, `~/.kube/config`, or in a pod
    without these the pod's service account."""
    context: str = ""
    """Context of that file; default: that which is current as the daemon starts, or as
    this table changes. Set it, so that every command uses the same cluster."""

    retired: ClassVar[Mapping[str, str]] = {
        **PodSettings.retired,
        "login": "remove it: the file's exec plugin has 30s to print credentials",
    }


class KubeProvider(PodProvider):
    """Followers as pods of an existing cluster."""

    Settings = KubeSettings
    concurrency = 4

    def __init__(
        self,
        name: str,
        settings: KubeSettings,
        owner: str,
        *,
        timeout: float = REQUEST_S,
    ) -> None:
        super().__init__(name, settings, owner)
        access = choose_access(settings.kubeconfig, settings.context)
        cluster = Cluster(access, timeout=timeout)
        self._settings = settings
        self._place = f"{server_of(access)} namespace {settings.namespace}"
        self._bursts = PodBursts(cluster, settings, self.tags)

    def place(self) -> str:
        """Return the API server and the namespace."""
        return self._place

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return a kubectl command that lists the pods, by the settings' kubeconfig."""
        known = self._settings
        files = [f"--kubeconfig={known.kubeconfig}"] if known.kubeconfig else []
        context = [f"--context={known.context}"] if known.context else []
        flags = [*files, *context]
        return [pods_command(known.namespace, self.tags, burst_id, flags)]

    def bursts(self) -> PodBursts:
        """Return the bursts in the cluster."""
        return self._bursts
