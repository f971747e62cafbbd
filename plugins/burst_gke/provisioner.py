# SPDX-License-Identifier: MIT
"""Finds, requests and deletes the clusters and node pools of bursts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from burst.errors import InsufficientCapacity, NotFound, Refused, SpecRefused, Transient
from burst.kits.pods.names import spec_hash
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Phase
from burst_gke.cloud import Cloud, ResourceExists
from burst_gke.requests import cluster_request, node_pool_request
from burst_gke.resources import (
    SPEC,
    BurstResources,
    GkeOperation,
    GkeResource,
    Labels,
    autopilot,
    find_bursts,
)
from burst_gke.settings import GkeSettings

# After how many seconds to repeat a provision that waits for GKE. Its operations take
# minutes, and a project may make a few requests a second.
_LOOK_AGAIN_S = 5.0


class Provisioner:
    """The clusters and pools of one provider's bursts."""

    def __init__(
        self,
        cloud: Cloud,
        settings: GkeSettings,
        labels: Labels,
        clock: Callable[[], float],
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._labels = labels
        self._clock = clock

    def find_clusters(self, burst_id: BurstId) -> list[GkeResource]:
        """Return all clusters, also this burst's if the list does not show it yet.

        A cluster that is not returned counts as deleted, and would continue to cost.
        """
        clusters = self._cloud.clusters()
        if burst_id in find_bursts(clusters, self._labels):
            return clusters
        name = self._settings.cluster or self._settings.name_of(burst_id)
        there = self._cloud.cluster(name)
        others = [cluster for cluster in clusters if cluster.name != name]
        return [*others, there] if there else others

    def ensure(self, spec: BurstSpec) -> BurstResources:
        """Return the burst's resources once GKE has made them or has failed to.

        Requests them first, unless that was done. Raises Transient until they are made;
        also InsufficientCapacity and Refused.
        """
        labels = self._labels_of(spec)
        clusters = {cluster.name: cluster for cluster in self._cloud.clusters()}
        own, name = self._settings.name_of(spec.burst_id), self._settings.cluster
        if not name:
            cluster = clusters.get(own)
            made = BurstResources(cluster) if cluster else None
            return self._usable(spec, labels, made)
        shared = clusters.get(name)
        if shared is None or shared.phase is Phase.ENDING:
            raise Refused(
                f"cluster {name} in {self._cloud.parent} cannot be used:"
                f" {shared.why if shared else 'it does not exist'}",
                'set cluster to another, or to "" for one for each burst',
            )
        if shared.autopilot:
            raise Refused(*autopilot(name))
        if shared.phase is Phase.PENDING:
            raise Transient(f"cluster {name} cannot be used yet: {shared.why}")
        pools = {pool.name: pool for pool in shared.pools}
        pool = pools.get(self._settings.pool or own)
        made = BurstResources(shared, pool) if pool else None
        if not self._settings.pool:
            return self._usable(spec, labels, made)
        if made is None:
            raise Refused(
                f"cluster {name} has no node pool {self._settings.pool}",
                f"it has {', '.join(pools)}",
            )
        return made

    def _usable(
        self,
        spec: BurstSpec,
        labels: Mapping[str, str],
        resources: BurstResources | None,
    ) -> BurstResources:
        """Return the resources if they are the burst's and GKE is not changing them."""
        name = self._settings.name_of(spec.burst_id)
        if resources is None:
            self._request(spec, labels)
            raise Transient(f"GKE has begun to make {name}", retry_after=_LOOK_AGAIN_S)
        found = (resources.pool or resources.cluster).labels
        if self._labels.burst_of(found) != spec.burst_id:
            what = "cluster" if resources.own_cluster else "node pool"
            raise SpecRefused(
                f"there is a {what} {name} in {self._cloud.parent} that lacks our"
                " labels, so it is not ours",
                "delete it, or rename the rank slot",
            )
        if found.get(SPEC) != labels[SPEC]:
            raise SpecRefused(
                f"{name} exists with other hosts or another machine type",
                "reap it first",
            )
        if resources.decisive.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(resources.decisive.why, retry_after=_LOOK_AGAIN_S)
        return resources

    def _request(self, spec: BurstSpec, labels: Mapping[str, str]) -> None:
        """Request the cluster or pool from GKE, unless that was done before.

        A second request would make a second resource, or hide that the first failed.
        """
        name = self._settings.name_of(spec.burst_id)
        last = next(iter(self._operations(spec.burst_id)), None)
        if last is not None:
            if not last.done:
                what = f"GKE has not ended {last.kind} of {name} yet"
                raise Transient(what, retry_after=_LOOK_AGAIN_S)
            if last.kind.startswith("delete"):
                raise InsufficientCapacity(f"{name} was deleted while it was made")
            if last.fault:
                raise last.fault.final_error(f"to make {name}")
            what = (
                f"GKE reports {last.kind} of {name} as done, and does not list it yet"
            )
            raise Transient(what, retry_after=_LOOK_AGAIN_S)
        order = node_pool_request if self._settings.cluster else cluster_request
        try:
            # From here on there may be costs. The request has the burst's labels.
            self._cloud.create(order(self._settings, spec, labels, self._clock()))
        except ResourceExists as error:
            raise Transient(error.what, retry_after=_LOOK_AGAIN_S) from error

    def delete(self, resources: BurstResources) -> None:
        """Request that GKE deletes the cluster or pool of a burst."""
        try:
            if resources.pool:
                self._cloud.delete_pool(resources.cluster.name, resources.pool.name)
            else:
                self._cloud.delete_cluster(resources.cluster.name)
        except NotFound:
            return  # it is gone already

    def check_finished(self, burst_id: BurstId) -> None:
        """Raise Transient while GKE has an operation on the burst that has not ended.

        A cluster that is being made can appear after the list was read.
        """
        for operation in self._operations(burst_id):
            if not operation.done:
                raise Transient(f"GKE has not ended {operation.kind} of {burst_id} yet")

    def _labels_of(self, spec: BurstSpec) -> Mapping[str, str]:
        """Return the labels of a burst of one of our offers. Raises Refused."""
        # The hash is of its first host only, because a resize changes the others. The
        # objects of its pods have all hosts.
        first = msgspec.structs.replace(
            spec, hosts=spec.hosts[:1], ranks=spec.ranks[:1]
        )
        machine = self._settings.machine(spec.offer)
        kind = (machine.machine_type, machine.accelerator, machine.gpus, machine.spot)
        known = spec_hash(first, *kind, self._settings.node_zone)
        return self._labels.labels_of(spec, known)

    def _operations(self, burst_id: BurstId) -> list[GkeOperation]:
        name, shared = self._settings.name_of(burst_id), self._settings.cluster
        target = f"clusters/{shared}/nodePools/{name}" if shared else f"clusters/{name}"
        return self._cloud.operations(target)
