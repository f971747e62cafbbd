# SPDX-License-Identifier: MIT
"""The GKE provider: a burst is a cluster or a node pool, and pods in it.

It remembers nothing that counts. Each call looks at what Google Cloud has under our
labels and does the one next thing, so that it can be repeated, by another process too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.kits.kube import Cluster, Endpoint
from burst.kits.minicluster import Tags
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Failure, Offer, Phase
from burst_gke.cloud import Cloud, Exists
from burst_gke.examine import examine_cloud
from burst_gke.followers import Followers, Pods, check
from burst_gke.ground import Deed, Ground
from burst_gke.names import SPEC, Mark, hash_spec
from burst_gke.orders import cluster_order, pod_settings, pool_order, with_lease
from burst_gke.settings import GkeSettings, offers_of
from burst_gke.sites import Site, describe, find_sites, target_of

# How long until a provision that waits for GKE is to be repeated: its work takes
# minutes, and a project may ask a few times a second.
_LOOK_AGAIN_S = 5.0
# So long pods may take to leave before their nodes are deleted under them: nodes cost.
_LEAVE_S = 60.0


class Means(msgspec.Struct, frozen=True):
    """What a provider works with."""

    cloud: Cloud
    followers: Callable[[Cluster, GkeSettings, Tags], Followers] = Pods
    clock: Callable[[], float] = time.time


class GkeProvider:
    """Followers in GKE."""

    Settings = GkeSettings

    def __init__(
        self,
        name: str,
        settings: GkeSettings,
        owner: str,
        means: Means | None = None,
    ) -> None:
        means = means or Means(Cloud(settings.parent))
        self._settings = settings
        self._mark = Mark(owner, name)
        self._tags = Tags(owner, name)
        self._cloud = means.cloud
        self._make_followers = means.followers
        self._reached: dict[str, Cluster] = {}
        """Connections, by the address of the API server and its authority."""
        self._clock = means.clock
        self._leaving: dict[BurstId, float] = {}
        """Since when the pods of a burst are asked to leave. Forgotten with us; then
        they get the time once more."""

    def offers(self) -> Sequence[Offer]:
        """Return the machines of the settings."""
        return offers_of(self._settings)

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster or pool, and once there is one the pods in it.

        Transient for as long as GKE is at work on it.
        """
        labels = self._admit(spec)
        site = self._site(spec, labels)
        ground = site.ground
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
        sites = find_sites(clusters, self._mark)
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
        clusters = self._cloud.clusters()
        site = find_sites(clusters, self._mark).get(burst_id)
        trouble: ProviderError | None = None
        try:
            if not self._pods_left(burst_id, clusters, site):
                return
        except ProviderError as error:
            # Nobody can say whether there are pods. What costs is deleted all the same.
            trouble = error
        if site is not None:
            if site.ground.phase is not Phase.ENDING:
                self._delete(site)
            return
        if trouble:
            raise trouble
        unfinished = [deed for deed in self._deeds(burst_id) if not deed.done]
        if unfinished:
            # What is being made can appear after we have looked for it.
            raise Transient(f"GKE still has {unfinished[0].kind} of {burst_id} to do")
        self._leaving.pop(burst_id, None)
        raise NotFound(f"GKE has nothing of {burst_id} any more")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at credentials, project and what bursts go into."""
        found, cluster = examine_cloud(self._cloud, self._settings, self._mark)
        if cluster is None:
            return found
        return [*found, *self._followers(cluster).examine(lead)]

    def _admit(self, spec: BurstSpec) -> Mapping[str, str]:
        """Return the labels of a burst that we sell. Raises Refused."""
        # Before anything is paid for.
        check(spec, self._settings, self._tags, self._clock())
        machine = self._settings.machine(spec.offer)
        kind = (machine.machine_type, machine.accelerator, machine.gpus, machine.spot)
        spec_hash = hash_spec(spec, *kind, self._settings.node_zone)
        return self._mark.labels_of(spec, spec_hash)

    def _site(self, spec: BurstSpec, labels: Mapping[str, str]) -> Site:
        """Return the burst's place, once GKE has made it or given it up.

        Orders it if nobody did. Raises Transient until then.
        """
        clusters = {cluster.name: cluster for cluster in self._cloud.clusters()}
        name = self._settings.cluster
        if not name:
            cluster = clusters.get(self._settings.name_of(spec.burst_id))
            return self._usable(spec, labels, Site(cluster) if cluster else None)
        shared = clusters.get(name)
        if shared is None or shared.phase is Phase.ENDING:
            raise Refused(
                f"cluster {name} in {self._cloud.parent} cannot be used:"
                f" {shared.why if shared else 'there is none'}",
                'name another, or set cluster = "" for one a burst',
            )
        if shared.phase is Phase.PENDING:
            raise Transient(f"cluster {name} cannot be used yet: {shared.why}")
        pools = {pool.name: pool for pool in shared.pools}
        if not self._settings.pool:
            pool = pools.get(self._settings.name_of(spec.burst_id))
            return self._usable(spec, labels, Site(shared, pool) if pool else None)
        if self._settings.pool not in pools:
            raise Refused(
                f"cluster {name} has no node pool {self._settings.pool}",
                f"it has {', '.join(pools)}",
            )
        return Site(shared, pools[self._settings.pool])

    def _usable(
        self, spec: BurstSpec, labels: Mapping[str, str], site: Site | None
    ) -> Site:
        """Return the place of the burst's name if it is the burst's and at its end."""
        name = self._settings.name_of(spec.burst_id)
        if site is None:
            self._order(spec, labels)
            raise Transient(f"GKE begins to make {name}", retry_after=_LOOK_AGAIN_S)
        found = (site.pool or site.cluster).labels
        if self._mark.burst_of(found) != spec.burst_id:
            what = "cluster" if site.own_cluster else "node pool"
            raise Refused(
                f"there is a {what} {name} in {self._cloud.parent} that lacks our"
                " labels, so it is not ours",
                "delete or rename it, or the rank slot",
            )
        if found.get(SPEC) != labels[SPEC]:
            raise Refused(
                f"{name} is there with other hosts or of another machine", "reap it"
            )
        if site.ground.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(site.ground.why, retry_after=_LOOK_AGAIN_S)
        return site

    def _order(self, spec: BurstSpec, labels: Mapping[str, str]) -> None:
        """Order it from GKE, unless that was done before.

        Ordered twice it would be paid twice, or hide that the first one failed.
        """
        name = self._settings.name_of(spec.burst_id)
        last = next(iter(self._deeds(spec.burst_id)), None)
        if last is not None:
            if not last.done:
                what = f"GKE is at {last.kind} of {name}"
                raise Transient(what, retry_after=_LOOK_AGAIN_S)
            if last.kind.startswith("delete"):
                raise InsufficientCapacity(f"{name} was deleted while it was made")
            if last.fault:
                raise last.fault.last_word(f"to make {name}")
            what = f"GKE says that it made {name}, and does not show it"
            raise Transient(what, retry_after=_LOOK_AGAIN_S)
        order = pool_order if self._settings.cluster else cluster_order
        try:
            # From here on it may cost; its labels come with the order.
            self._cloud.create(order(self._settings, spec, labels, self._clock()))
        except Exists as error:
            raise Transient(error.what, retry_after=_LOOK_AGAIN_S) from error

    def _pods_left(
        self, burst_id: BurstId, clusters: Sequence[Ground], site: Site | None
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

    def _delete(self, site: Site) -> None:
        """Have GKE delete what bears the labels of a burst, with all that is in it."""
        try:
            if site.pool:
                self._cloud.delete_pool(site.cluster.name, site.pool.name)
            else:
                self._cloud.delete_cluster(site.cluster.name)
        except NotFound:
            return  # the next look will say so too

    def _inhabited(
        self, clusters: Sequence[Ground], sites: Iterable[Site]
    ) -> list[Ground]:
        """Return the clusters in which there may be pods of ours."""
        names = {site.cluster.name for site in sites} | {self._settings.cluster}
        running = [c for c in clusters if c.name in names and c.endpoint]
        return [c for c in running if c.phase in (Phase.RUNNING, Phase.FAILED)]

    def _deeds(self, burst_id: BurstId) -> list[Deed]:
        name, shared = self._settings.name_of(burst_id), self._settings.cluster
        target = target_of(shared, name) if shared else target_of(name, "")
        return self._cloud.deeds(target)

    def _followers(
        self, cluster: Ground, settings: GkeSettings | None = None
    ) -> Followers:
        key = f"{cluster.endpoint} {cluster.ca}"
        if key not in self._reached:
            url = f"https://{cluster.endpoint}"
            access = Endpoint(url, cluster.ca, self._cloud.token)
            self._reached[key] = Cluster(access, timeout=self._settings.timeout)
        settings = settings or self._settings
        return self._make_followers(self._reached[key], settings, self._tags)
