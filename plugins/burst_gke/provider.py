# SPDX-License-Identifier: MIT
"""The GKE provider: a burst is a cluster or a node pool, and pods in it.

It keeps no state that matters. Each call reads what exists in Google Cloud with our
labels and does the next step, so any call can be repeated, also by another process.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Transient,
)
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import PodSettingsProvider, Tags, check_burst
from burst.kits.pods.diagnose.examine import examine_lead
from burst.kits.pods.made_places import MadePlaces, ReachedClusters, describe_all
from burst.kits.pods.names import pods_command
from burst.kits.resource_tags import distinct
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, note
from burst.model.lead import LeadIdentity
from burst.provider import (
    BurstSpec,
    BurstStatus,
    Offer,
    OwnedBurst,
    Phase,
)
from burst_gke.apis import GoogleApis
from burst_gke.cloud import Cloud
from burst_gke.examine import examine_cloud, examine_project
from burst_gke.failures import LACKS, LASTING, CloudFailure
from burst_gke.followers import GkePods
from burst_gke.provisioner import Provisioner
from burst_gke.requests import on_pool, pod_settings, with_lease
from burst_gke.resizer import PoolResizer
from burst_gke.resources import (
    BurstResources,
    GkeResource,
    Labels,
    find_bursts,
    list_owned,
)
from burst_gke.settings import GkeSettings, offers_alike, offers_of

# Flags of `gcloud container clusters get-credentials`, by `endpoint` of the settings.
_ENDPOINTS = {"default": [], "private": ["--internal-ip"], "dns": ["--dns-endpoint"]}
MakePods = Callable[[Cluster, GkeSettings, Tags], GkePods]


class Dependencies(msgspec.Struct, frozen=True):
    """What tests replace: Google Cloud, the pods, the clock."""

    cloud: Cloud
    followers: MakePods = GkePods
    clock: Callable[[], float] = time.time
    apis: GoogleApis | None = None
    """None: only GKE is asked, and the VMs of nodes cannot be seen."""


class GkeProvider(PodSettingsProvider):
    """Followers in GKE."""

    Settings = GkeSettings

    def __init__(
        self,
        name: str,
        settings: GkeSettings,
        owner: str,
        dependencies: Dependencies | None = None,
    ) -> None:
        if dependencies is None:
            cloud = Cloud(settings.parent)
            apis = GoogleApis(settings.project, cloud.token)
            dependencies = Dependencies(cloud, apis=apis)
        super().__init__(name, settings, owner)
        self._apis = dependencies.apis
        self._settings = settings
        self._labels = Labels(owner, name)
        self._cloud = dependencies.cloud
        self._provisioner = Provisioner(
            dependencies.cloud, settings, self._labels, dependencies.clock
        )
        self._resizer = PoolResizer(
            dependencies.cloud,
            dependencies.apis,
            settings,
            self._check,
            dependencies.clock,
        )
        self._make = dependencies.followers
        self._reached = ReachedClusters[GkePods]()
        self._clock = dependencies.clock
        self._places = MadePlaces(dependencies.clock)

    def offers(self) -> Sequence[Offer]:
        """Return an offer for each machine type of the settings."""
        return offers_of(self._settings)

    def place(self) -> str:
        """Return project and location, the shared cluster if any, and the namespace."""
        known = self._settings
        cluster = f" cluster {known.cluster}" if known.cluster else ""
        return f"{known.parent}{cluster} namespace {known.namespace}"

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return a gcloud command for a kubeconfig, and one that lists the pods."""
        known = self._settings
        words = [
            *("gcloud", "container", "clusters", "get-credentials"),
            known.cluster or known.name_of(burst_id),
            f"--project={known.project}",
            f"--location={known.location}",  # a zone or a region
            *_ENDPOINTS[known.endpoint],
        ]
        return [shlex.join(words), pods_command(known.namespace, self.tags, burst_id)]

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster or pool, then the pods in it.

        Raises Transient while GKE is making the cluster or pool.
        """
        try:
            self._provision(spec)
        except InsufficientCapacity as error:
            quota = CloudFailure("RESOURCE_EXHAUSTED", error.what)
            if quota.everywhere:
                error.offers = offers_alike(
                    self._settings, spec.offer, gpus=quota.of_gpus
                )
            raise

    def _provision(self, spec: BurstSpec) -> None:
        self._check(spec)  # before anything is made that costs
        resources = self._provisioner.ensure(spec)
        resource = resources.decisive
        # The pool of the settings is used even if GKE reports an error of it.
        if resource.phase is Phase.FAILED and not self._settings.pool:
            fault = resource.fault
            if fault is not None and fault.meaning in (*LACKS, *LASTING):
                # Nodes that came up cost, and are deleted with the rest.
                raise fault.as_error(f"{resource.why}; what was made is deleted")
            if resource.impaired:
                # It counts as failed only if its API server answers. If that does not,
                # this raises, so that its pods are made once it works again.
                self._pods(resources.cluster).observe()
            return  # `observe` reports that it failed, and why
        settings = pod_settings(self._settings, spec)
        lent = with_lease(self._settings, spec, self._clock())
        self._pods(resources.cluster, settings).provision(lent)
        self._pods(resources.cluster).expect(spec.burst_id)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have a cluster, a pool or an object in a cluster."""
        clusters = self._cloud.clusters()
        bursts = find_bursts(clusters, self._labels)
        troubles: dict[str, ProviderError] = {}
        statuses: dict[BurstId, BurstStatus] = {}
        used: list[str] = []
        for cluster in self._inhabited(clusters, bursts.values()):
            try:
                pods = self._pods(cluster)
                used.append(cluster.name)
                listed = self._observe_in(pods)
            except ProviderError as error:
                if cluster.name == self._settings.cluster:
                    # It may have bursts that only its API server can list.
                    raise
                troubles[cluster.name] = error
            else:
                statuses.update((status.burst_id, status) for status in listed)
        self._resizer.forget_others(statuses)
        self._reached.close_others(used)
        places = {name: resources.decisive for name, resources in bursts.items()}
        for name, resources in bursts.items():
            trouble = troubles.get(resources.cluster.name)
            if trouble:
                places[name] = _unreachable(places[name], trouble)
        return describe_all(places, statuses.values())

    def resize(self, spec: BurstSpec) -> None:
        """Adapt the pool's bounds, the pods and the nodes to the burst's new size.

        Raises Transient while GKE changes the bounds.
        """
        clusters = self._provisioner.find_clusters(spec.burst_id)
        resources = find_bursts(clusters, self._labels).get(spec.burst_id)
        if resources is None and not self._settings.pool:
            raise NotFound(f"there is no cluster or node pool of {spec.burst_id}")
        if resources and resources.decisive.phase is Phase.ENDING:
            raise Transient(resources.decisive.why)
        settings = pod_settings(self._settings, spec)
        # The pods of a growth end when their nodes do.
        spec = with_lease(self._settings, spec, self._clock())
        for cluster in self._inhabited(clusters, [resources] if resources else []):
            if resources and cluster.name != resources.cluster.name:
                continue
            pods = self._pods(cluster, settings)
            try:
                if resources is None:
                    pods.resize(spec)  # the nodes are not ours
                else:
                    self._resizer.resize(spec, resources, pods)
            finally:
                # Also after an error: the next read has to show what was changed.
                self._pods(cluster).expect(spec.burst_id, anew=True)
            return
        raise Transient(f"the cluster of {spec.burst_id} is not running")

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners: clusters, pools, pods of the named cluster.

        Pods in a burst's own cluster are deleted with it.
        """
        clusters = self._cloud.clusters()
        found = list_owned(clusters)
        for cluster in self._inhabited(clusters, ()):
            found += self._pods(cluster).list_all()
        return distinct(found)

    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Delete the pods, then what they ran on; NotFound once GKE has neither."""
        clusters = self._provisioner.find_clusters(burst_id)
        found = find_bursts(clusters, self._labels).get(burst_id)

        def end() -> None:
            assert found is not None, "there is a place to delete"
            self._provisioner.delete(found)

        try:
            self._places.reap(
                burst_id,
                found.decisive if found else None,
                lambda: self._reap_pods(burst_id, clusters, found, force=force),
                end,
            )
        except NotFound:
            self._provisioner.check_finished(burst_id)
            raise

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check credentials, project and the cluster."""
        found, cluster = examine_cloud(self._cloud, self._settings, self._labels)
        if self._apis is not None and self._has_credentials():
            found += examine_project(self._apis, self._settings)
        if cluster is not None:
            return [*found, *self._pods(cluster).examine(lead)]
        return [*found, *(examine_lead(self._settings, lead) if lead else ())]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Run a pod in the named cluster that tries to connect to the lead."""
        _, cluster = examine_cloud(self._cloud, self._settings, self._labels)
        if cluster is None:
            advice = "set cluster to one that runs, and try again"
            return [note("there is no cluster in which a pod could try it", advice)]
        settings = self._settings
        if settings.pool:
            settings = on_pool(settings, settings.pool)
        return self._pods(cluster, settings).probe(lead, tell, user)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event for the burst's Job or MiniCluster.

        It uses the last connection to the cluster: Google is not called for an event.
        Raises NotFound if there was none yet.
        """
        name = self._settings.cluster or self._settings.name_of(burst_id)
        self._reached.last_in(name).record_event(burst_id, event, text)

    def _check(self, spec: BurstSpec) -> None:
        check_burst(spec, self._settings, self.tags, self._clock)

    def _has_credentials(self) -> bool:
        """Return whether there are credentials. If not, `examine_cloud` says so."""
        try:
            self._cloud.token()
        except ProviderError:
            return False
        return True

    def _reap_pods(
        self,
        burst_id: BurstId,
        clusters: Sequence[GkeResource],
        resources: BurstResources | None,
        *,
        force: bool,
    ) -> None:
        """Delete the pods of a burst. Raises NotFound once there are none."""
        left = False
        for cluster in self._inhabited(clusters, [resources] if resources else []):
            pods = self._pods(cluster)
            try:
                pods.reap(burst_id, force=force)
            except NotFound:
                continue
            left = True
        if not left:
            raise NotFound(f"nothing of {burst_id} is left in GKE")

    def _pods(
        self, cluster: GkeResource, settings: GkeSettings | None = None
    ) -> GkePods:
        """Return the pods in a cluster.

        `settings` other than the provider's give a new object with the same connection.
        What it makes or changes, the object that observes has to expect.
        Raises Refused if the cluster lacks the endpoint that the settings name.
        """
        url, authority = cluster.reach(self._settings.endpoint)

        def reach() -> GkePods:
            access = Endpoint(url, authority, self._cloud.token)
            made = Cluster(access)
            return self._make(made, self._settings, self.tags)

        pods = self._reached.bursts(cluster.name, (url, authority), reach)
        if settings is None:
            return pods
        return self._make(pods.cluster, settings, self.tags)

    def _inhabited(
        self, clusters: Sequence[GkeResource], bursts: Iterable[BurstResources]
    ) -> list[GkeResource]:
        """Return the clusters that may have our pods, as their API servers may run.

        One without the address that the settings select is among them: it may have
        pods, and `_pods` refuses to reach it.
        """
        names = {resources.cluster.name for resources in bursts} | {
            self._settings.cluster
        }
        ours = [c for c in clusters if c.name in names]
        return [c for c in ours if c.phase in (Phase.RUNNING, Phase.FAILED)]

    def _observe_in(self, pods: GkePods) -> Sequence[BurstStatus]:
        listed = pods.observe()
        if self._settings.pool:
            return listed
        return [self._resizer.complete(status, pods) for status in listed]


def _unreachable(place: GkeResource, trouble: ProviderError) -> GkeResource:
    """Return the place of a burst whose pods cannot be read.

    The burst makes no progress. Pods may run in a place that is only impaired.
    """
    if place.phase is not Phase.RUNNING and not place.impaired:
        return place
    why = "; ".join(filter(None, (place.why, str(trouble))))
    return msgspec.structs.replace(place, phase=Phase.RUNNING, why=why, fault=None)
