# SPDX-License-Identifier: MIT
"""The kube provider: a burst is a Job or a MiniCluster in a cluster that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burst.config import Seconds
from burst.kits.kube import Cluster, choose_access
from burst.kits.minicluster import MiniClusters, MiniClusterSettings, Tags, offers
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Offer


class KubeSettings(MiniClusterSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "kube"`."""

    kubeconfig: str = ""
    """Path of the file; default: KUBECONFIG, `~/.kube/config`, or in a pod without
    these its service account."""
    context: str = ""
    """One of the file's; default: its current one."""
    login: Seconds = Seconds(30)
    """How long the file's exec plugin, such as that of aws or gcloud, may take to print
    credentials. It is run when a connection is made, and when its token ends."""


class KubeProvider:
    """Followers as pods of a cluster that others run."""

    Settings = KubeSettings

    def __init__(self, name: str, settings: KubeSettings, owner: str) -> None:
        self._settings = settings
        access = choose_access(settings.kubeconfig, settings.context, settings.login)
        cluster = Cluster(access, timeout=settings.timeout)
        self._bursts = MiniClusters(cluster, settings, Tags(owner, name))

    def offers(self) -> Sequence[Offer]:
        """Return the offers of the settings."""
        return offers(self._settings)

    def provision(self, spec: BurstSpec) -> None:
        """Make what is missing of the burst's objects."""
        self._bursts.provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which there is any object."""
        return self._bursts.observe()

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst's objects; NotFound once there are none."""
        self._bursts.reap(burst_id)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at the cluster, the rights in it, the image and the lead's address."""
        return self._bursts.examine(lead)

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Have a pod try whether it reaches the lead's address."""
        return self._bursts.probe(lead, tell)
