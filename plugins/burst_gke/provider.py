# SPDX-License-Identifier: MIT
"""The GKE provider: a burst is a cluster or a node pool, and pods in it.

It remembers nothing that counts. Each call looks at what Google Cloud has under our
labels and does the one next thing, so that it can be repeated, by another process too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
)
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import Bursts, PodBursts, Tags, check_burst
from burst.kits.pods.examine import examine_lead
from burst.model.burst import BurstId
from burst.model.finding import Finding, note
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Failure, Offer, Phase
from burst_gke.burst_resources import BurstResources, describe, find_bursts
from burst_gke.cloud import Cloud
from burst_gke.examine import examine_cloud
from burst_gke.names import Labels
from burst_gke.provisioner import Provisioner
from burst_gke.requests import on_pool, pod_settings, with_lease
from burst_gke.resources import GkeResource
from burst_gke.settings import GkeSettings, offers_of

# So long pods may take to leave before their nodes are deleted under them: nodes cost.
_LEAVE_S = 60.0


def _pods(cluster: Cluster, settings: GkeSettings, tags: Tags) -> Bursts:
    return PodBursts(cluster, settings, tags, own_cluster=not settings.cluster)


class Dependencies(msgspec.Struct, frozen=True):
    """What a provider works with."""

    cloud: Cloud
    followers: Callable[[Cluster, GkeSettings, Tags], Bursts] = _pods
    clock: Callable[[], float] = time.time


class GkeProvider:
    """Followers in GKE."""

    Settings = GkeSettings

    def __init__(
        self,
        name: str,
        settings: GkeSettings,
        owner: str,
        dependencies: Dependencies | None = None,
    ) -> None:
        dependencies = dependencies or Dependencies(Cloud(settings.parent))
        self._settings = settings
        self._labels = Labels(owner, name)
        self._tags = Tags(owner, name)
        self._cloud = dependencies.cloud
        self._provisioner = Provisioner(
            dependencies.cloud, settings, self._labels, dependencies.clock
        )
        self._make_followers = dependencies.followers
        self._reached: dict[str, Cluster] = {}
        """Connections, by the address of the API server and its authority."""
        self._clock = dependencies.clock
        self._leaving: dict[BurstId, float] = {}
        """Since when the pods of a burst are asked to leave. Forgotten with us; then
        they get the time once more."""

    def offers(self) -> Sequence[Offer]:
        """Return the machines of the settings."""
        return offers_of(self._settings)

    def place(self) -> str:
        """Return project and location, the shared cluster if any, and the namespace."""
        known = self._settings
        cluster = f" cluster {known.cluster}" if known.cluster else ""
        return f"{known.parent}{cluster} namespace {known.namespace}"

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster or pool, and once there is one the pods in it.

        Transient for as long as GKE is at work on it.
        """
        # Before anything is paid for.
        check_burst(spec, self._settings, self._tags, self._clock)
        site = self._provisioner.ensure(spec)
        ground = site.resource
        # A pool that others made may be good enough, whatever GKE says of it.
        if ground.phase is Phase.FAILED and not self._settings.pool:
            if ground.failure is Failure.CAPACITY:
                raise InsufficientCapacity(ground.why, "its remains are deleted")
            return  # `observe` says that it failed, and why
        settings = pod_settings(self._settings, spec)
        lent = with_lease(self._settings, spec, self._clock())
        self._followers(site.cluster, settings).provision(lent)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which there is a cluster, a pool or an object."""
        clusters = self._cloud.clusters()
        sites = find_bursts(clusters, self._labels)
        troubles: dict[str, ProviderError] = {}
        statuses: dict[BurstId, BurstStatus] = {}
        for cluster in self._inhabited(clusters, sites.values()):
            try:
                listed = self._followers(cluster).observe()
            except ProviderError as error:
                if cluster.name == self._settings.cluster:
                    # There may be bursts of which only its API server knows.
                    raise
                troubles[cluster.name] = error
            else:
                statuses.update((status.burst_id, status) for status in listed)
        found = []
        for burst_id in sorted({*sites, *statuses}):
            site = sites.get(burst_id)
            status = describe(burst_id, site, statuses.get(burst_id))
            trouble = troubles.get(site.cluster.name) if site else None
            if trouble and status.phase is Phase.PENDING:
                status = msgspec.structs.replace(status, why=str(trouble))
            found.append(status)
        return found

    def reap(self, burst_id: BurstId) -> None:
        """Delete the pods, then what they ran on; NotFound once GKE has neither."""
        clusters = self._provisioner.find_clusters(burst_id)
        site = find_bursts(clusters, self._labels).get(burst_id)
        trouble: ProviderError | None = None
        try:
            if not self._pods_left(burst_id, clusters, site):
                return
        except ProviderError as error:
            # Nobody can say whether there are pods. What costs is deleted all the same.
            trouble = error
        if site is not None:
            if site.resource.phase is not Phase.ENDING:
                self._provisioner.delete(site)
            return
        if trouble:
            raise trouble
        self._provisioner.check_finished(burst_id)
        self._leaving.pop(burst_id, None)
        raise NotFound(f"GKE has nothing of {burst_id} any more")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at credentials, project and what bursts go into."""
        found, cluster = examine_cloud(self._cloud, self._settings, self._labels)
        if cluster is not None:
            return [*found, *self._followers(cluster).examine(lead)]
        return [*found, *(examine_lead(self._settings, lead) if lead else ())]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Have a pod try whether it reaches the lead, where a cluster is named."""
        _, cluster = examine_cloud(self._cloud, self._settings, self._labels)
        if cluster is None:
            advice = "with cluster = NAME, that of a cluster that runs, a pod can"
            return [note("there is no cluster in which a pod could try it", advice)]
        settings = self._settings
        if settings.pool:
            settings = on_pool(settings, settings.pool)
        return self._followers(cluster, settings).probe(lead, tell)

    def _pods_left(
        self,
        burst_id: BurstId,
        clusters: Sequence[GkeResource],
        site: BurstResources | None,
    ) -> bool:
        """Ask the pods to leave; tell whether to go on without waiting for them."""
        since = self._leaving.setdefault(burst_id, self._clock())
        gone = True
        for cluster in self._inhabited(clusters, [site] if site else []):
            try:
                self._followers(cluster).reap(burst_id)
            except NotFound:
                continue
            gone = False
        return gone or (site is not None and self._clock() - since > _LEAVE_S)

    def _inhabited(
        self, clusters: Sequence[GkeResource], sites: Iterable[BurstResources]
    ) -> list[GkeResource]:
        """Return the clusters in which there may be pods of ours."""
        names = {site.cluster.name for site in sites} | {self._settings.cluster}
        running = [c for c in clusters if c.name in names and c.endpoint]
        return [c for c in running if c.phase in (Phase.RUNNING, Phase.FAILED)]

    def _followers(
        self, cluster: GkeResource, settings: GkeSettings | None = None
    ) -> Bursts:
        url, authority = cluster.reach(self._settings.endpoint)
        key = f"{url} {authority}"
        if key not in self._reached:
            access = Endpoint(url, authority, self._cloud.token)
            self._reached[key] = Cluster(access, timeout=self._settings.timeout)
        settings = settings or self._settings
        return self._make_followers(self._reached[key], settings, self._tags)
