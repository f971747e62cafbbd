# SPDX-License-Identifier: MIT
"""Google's side of a burst: finds, orders and deletes what it stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from burst.errors import InsufficientCapacity, NotFound, Refused, SpecRefused, Transient
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Phase
from burst_gke.burst_resources import BurstResources, find_bursts, target_of
from burst_gke.cloud import Cloud, ResourceExists
from burst_gke.names import SPEC, Labels, hash_spec
from burst_gke.requests import cluster_request, node_pool_request
from burst_gke.resources import GkeOperation, GkeResource
from burst_gke.settings import GkeSettings

# How long until a provision that waits for GKE is to be repeated: its work takes
# minutes, and a project may ask a few times a second.
_LOOK_AGAIN_S = 5.0


class Provisioner:
    """The clusters and pools of one provider's bursts."""

    def __init__(
        self,
        cloud: Cloud,
        settings: GkeSettings,
        mark: Labels,
        clock: Callable[[], float],
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._labels = mark
        self._clock = clock

    def find_clusters(self, burst_id: BurstId) -> list[GkeResource]:
        """Return all clusters, those of this burst even where lists are late.

        Money hangs on it: what is not among them counts as gone.
        """
        clusters = self._cloud.clusters()
        if burst_id in find_bursts(clusters, self._labels):
            return clusters
        name = self._settings.cluster or self._settings.name_of(burst_id)
        there = self._cloud.cluster(name)
        others = [cluster for cluster in clusters if cluster.name != name]
        return [*others, there] if there else others

    def ensure(self, spec: BurstSpec) -> BurstResources:
        """Return the burst's place, once GKE has made it or given it up.

        Orders it if nobody did. Raises Transient until then, InsufficientCapacity and
        Refused.
        """
        labels = self._labels_of(spec)
        clusters = {cluster.name: cluster for cluster in self._cloud.clusters()}
        name = self._settings.cluster
        if not name:
            cluster = clusters.get(self._settings.name_of(spec.burst_id))
            return self._usable(
                spec, labels, BurstResources(cluster) if cluster else None
            )
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
            return self._usable(
                spec, labels, BurstResources(shared, pool) if pool else None
            )
        if self._settings.pool not in pools:
            raise Refused(
                f"cluster {name} has no node pool {self._settings.pool}",
                f"it has {', '.join(pools)}",
            )
        return BurstResources(shared, pools[self._settings.pool])

    def _usable(
        self, spec: BurstSpec, labels: Mapping[str, str], site: BurstResources | None
    ) -> BurstResources:
        """Return the place of the burst's name if it is the burst's and at its end."""
        name = self._settings.name_of(spec.burst_id)
        if site is None:
            self._request(spec, labels)
            raise Transient(f"GKE begins to make {name}", retry_after=_LOOK_AGAIN_S)
        found = (site.pool or site.cluster).labels
        if self._labels.burst_of(found) != spec.burst_id:
            what = "cluster" if site.own_cluster else "node pool"
            raise SpecRefused(
                f"there is a {what} {name} in {self._cloud.parent} that lacks our"
                " labels, so it is not ours",
                "delete or rename it, or the rank slot",
            )
        if found.get(SPEC) != labels[SPEC]:
            raise SpecRefused(
                f"{name} is there with other hosts or of another machine", "reap it"
            )
        if site.resource.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(site.resource.why, retry_after=_LOOK_AGAIN_S)
        return site

    def _request(self, spec: BurstSpec, labels: Mapping[str, str]) -> None:
        """Order it from GKE, unless that was done before.

        Ordered twice it would be paid twice, or hide that the first one failed.
        """
        name = self._settings.name_of(spec.burst_id)
        last = next(iter(self._operations(spec.burst_id)), None)
        if last is not None:
            if not last.done:
                what = f"GKE is at {last.kind} of {name}"
                raise Transient(what, retry_after=_LOOK_AGAIN_S)
            if last.kind.startswith("delete"):
                raise InsufficientCapacity(f"{name} was deleted while it was made")
            if last.fault:
                raise last.fault.final_error(f"to make {name}")
            what = f"GKE says that it made {name}, and does not show it"
            raise Transient(what, retry_after=_LOOK_AGAIN_S)
        order = node_pool_request if self._settings.cluster else cluster_request
        try:
            # From here on it may cost; its labels come with the order.
            self._cloud.create(order(self._settings, spec, labels, self._clock()))
        except ResourceExists as error:
            raise Transient(error.what, retry_after=_LOOK_AGAIN_S) from error

    def delete(self, site: BurstResources) -> None:
        """Have GKE delete what bears the labels of a burst, with all that is in it."""
        try:
            if site.pool:
                self._cloud.delete_pool(site.cluster.name, site.pool.name)
            else:
                self._cloud.delete_cluster(site.cluster.name)
        except NotFound:
            return  # the next look will say so too

    def check_finished(self, burst_id: BurstId) -> None:
        """Raise Transient while GKE is at work on the burst.

        What is being made can appear after one has looked for it.
        """
        for deed in self._operations(burst_id):
            if not deed.done:
                raise Transient(f"GKE still has {deed.kind} of {burst_id} to do")

    def _labels_of(self, spec: BurstSpec) -> Mapping[str, str]:
        """Return the labels of a burst that we sell. Raises Refused."""
        machine = self._settings.machine(spec.offer)
        kind = (machine.machine_type, machine.accelerator, machine.gpus, machine.spot)
        spec_hash = hash_spec(spec, *kind, self._settings.node_zone)
        return self._labels.labels_of(spec, spec_hash)

    def _operations(self, burst_id: BurstId) -> list[GkeOperation]:
        name, shared = self._settings.name_of(burst_id), self._settings.cluster
        target = target_of(shared, name) if shared else target_of(name, "")
        return self._cloud.operations(target)
