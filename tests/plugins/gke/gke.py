# SPDX-License-Identifier: MIT
"""A Google Kubernetes Engine of our own: what it has, and how it goes wrong.

Work takes a number of looks instead of time, so that no test waits. `server.py` puts
the service in front of it.
"""

from __future__ import annotations

import base64
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud.container_v1 import types as t
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import ErrorInfo

PROJECT = "some-project"
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?\Z")
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")


def _value(kind: Any, name: str) -> Any:
    """Return the value of an enumeration."""
    return kind[name]


class Denied(Exception):
    """An RPC that is answered with an error."""

    def __init__(
        self,
        code: str,
        message: str,
        retry_after: float | None = None,
        info: tuple[str, dict[str, str]] | None = None,
    ) -> None:
        """`info`: reason and metadata of a google.rpc.ErrorInfo."""
        super().__init__(message)
        self.info = info
        self.code = grpc.StatusCode[code]
        self.retry_after = retry_after


@dataclass(frozen=True)
class Fate:
    """How an order goes on, once it was accepted."""

    looks: int = 1
    """Reads until the operation is done."""
    error: tuple[int, str] | None = None
    """What the operation says at its end, with status DONE."""
    remains: str = "RUNNING"
    """Status of the thing then; empty if nothing remains, or it never appears."""
    conditions: Sequence[tuple[str, str]] = ()
    """StatusCondition codes and messages, from the beginning."""
    info: tuple[str, dict[str, str]] | None = None
    """Of the operation's error: reason and metadata of a google.rpc.ErrorInfo."""
    up: int = 0
    """How many nodes come up of those that were ordered, before it fails."""


@dataclass
class Job:
    """An operation, and the looks that it takes still."""

    operation: t.Operation
    target: tuple[str, str]
    looks: int
    fate: Fate
    then: Callable[[], None] | None = None
    """Of a change of what exists: does it."""


@dataclass
class Gke:
    """All clusters of the project, by name, and all that GKE was asked."""

    clusters: dict[str, t.Cluster] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    orders: list[Any] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    """Of the next orders; Fate() afterwards."""
    denials: dict[str, list[Denied]] = field(default_factory=dict)
    """What the next calls of a method are answered with, before anything is done."""
    drops: dict[str, int] = field(default_factory=dict)
    """For how many calls the answer is lost after all was done."""
    hangs: dict[str, threading.Event] = field(default_factory=dict)
    """Methods that answer once this is set."""
    missing_zones: list[str] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)
    """Clusters that lists do not show yet."""
    ca: str = "-----BEGIN CERTIFICATE-----"
    endpoints: list[str] = field(default_factory=list)
    """Of the next clusters; numbered addresses afterwards."""
    vms: dict[str, dict[str, int | None]] = field(default_factory=dict)
    """Of each instance group, by its path: the names of its VMs, each with the looks
    until it is gone, if it is being deleted."""
    room: int = 1000
    """How many VMs there can be."""
    stalled: bool = False
    """Whether no VM is made, and no pod is put on one."""
    looks_to_delete: int = 2
    """Of a VM."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add_cluster(self, name: str, status: str = "RUNNING", **more: Any) -> t.Cluster:
        """Have a cluster that nobody ordered."""
        cluster = t.Cluster(name=name, status=_value(t.Cluster.Status, status), **more)
        self._give_endpoint(cluster)
        self.clusters[name] = cluster
        return cluster

    def things(self) -> dict[str, Any]:
        """Return all clusters and pools that bear labels of a burst, by path."""
        found: dict[str, Any] = {}
        for cluster in self.clusters.values():
            if "burst-id" in cluster.resource_labels:
                found[cluster.name] = cluster
            for pool in cluster.node_pools:
                if "burst-id" in pool.config.resource_labels:
                    found[f"{cluster.name}/{pool.name}"] = pool
        return found

    def turn(self) -> None:
        """Let all work go on by one look."""
        for vms in self.vms.values():
            for name, looks in list(vms.items()):
                if looks == 0:
                    del vms[name]
                elif looks is not None:
                    vms[name] = looks - 1
        for job in self.jobs:
            if job.looks > 0:
                job.looks -= 1
                if not job.looks:
                    self._finish(job)

    # The service's methods, each with its request, under the lock.

    def list_clusters(self, _: t.ListClustersRequest) -> t.ListClustersResponse:
        self.turn()
        return t.ListClustersResponse(
            clusters=[c for c in self.clusters.values() if c.name not in self.unlisted],
            missing_zones=self.missing_zones,
        )

    def get_cluster(self, request: t.GetClusterRequest) -> t.Cluster:
        self.turn()
        return self._cluster(request.name)

    def list_operations(self, _: t.ListOperationsRequest) -> t.ListOperationsResponse:
        self.turn()
        return t.ListOperationsResponse(
            operations=[job.operation for job in self.jobs],
            missing_zones=self.missing_zones,
        )

    def create_cluster(self, request: t.CreateClusterRequest) -> t.Operation:
        cluster = request.cluster
        check_labels(cluster.resource_labels)
        for pool in cluster.node_pools:
            check_pool(pool)
        if not _NAME.match(cluster.name):
            raise Denied("INVALID_ARGUMENT", f"Bad cluster name {cluster.name!r}")
        if cluster.name in self.clusters:
            path = f"{request.parent}/clusters/{cluster.name}"
            raise Denied("ALREADY_EXISTS", f"Already exists: {path}")
        self.orders.append(request)
        self._give_endpoint(cluster)
        return self._begin("CREATE_CLUSTER", (cluster.name, ""), cluster)

    def create_node_pool(self, request: t.CreateNodePoolRequest) -> t.Operation:
        cluster = self._cluster(request.parent)
        pool = request.node_pool
        check_pool(pool)
        if any(other.name == pool.name for other in cluster.node_pools):
            path = f"{request.parent}/nodePools/{pool.name}"
            raise Denied("ALREADY_EXISTS", f"Already exists: {path}")
        self.orders.append(request)
        return self._begin("CREATE_NODE_POOL", (cluster.name, pool.name), pool)

    def delete_cluster(self, request: t.DeleteClusterRequest) -> t.Operation:
        cluster = self._cluster(request.name)
        self._refuse_if_busy((cluster.name, ""))
        return self._end("DELETE_CLUSTER", (cluster.name, ""), cluster)

    def delete_node_pool(self, request: t.DeleteNodePoolRequest) -> t.Operation:
        path, _, name = request.name.partition("/nodePools/")
        cluster = self._cluster(path)
        pool = next((p for p in cluster.node_pools if p.name == name), None)
        if pool is None:
            raise Denied("NOT_FOUND", f"Not found: {request.name}")
        self._refuse_if_busy((cluster.name, name))
        return self._end("DELETE_NODE_POOL", (cluster.name, name), pool)

    def set_node_pool_autoscaling(
        self, request: t.SetNodePoolAutoscalingRequest
    ) -> t.Operation:
        path, _, name = request.name.partition("/nodePools/")
        cluster = self._cluster(path)
        pool = next((p for p in cluster.node_pools if p.name == name), None)
        if pool is None:
            raise Denied("NOT_FOUND", f"Not found: {request.name}")
        self._refuse_if_busy((cluster.name, name))
        self.orders.append(request)
        fate = self.fates.pop(0) if self.fates else Fate()
        operation = self._note("UPDATE_CLUSTER", (cluster.name, name), fate)

        def change() -> None:
            pool.autoscaling = request.autoscaling

        self.jobs[-1].then = change
        return operation

    # What GKE's autoscaler does, and Compute Engine.

    def pool_of(self, cluster: t.Cluster, burst: str) -> t.NodePool | None:
        """Return the pool that was made for a burst."""
        pools = (
            pool
            for pool in cluster.node_pools
            if pool.config.resource_labels.get("burst-id") == burst
        )
        return next(pools, None)

    def scale_up(self, pool: t.NodePool, lacking: int) -> None:
        """Make a VM for each pod that has none, as far as the pool's bounds allow."""
        for url in pool.instance_group_urls:
            vms = self.vms[url.partition("/projects/")[2]]
            for _ in range(lacking):
                full = sum(map(len, self.vms.values())) >= self.room
                if len(vms) < pool.autoscaling.total_max_node_count and not full:
                    vms[self.vm_name(pool)] = None

    def vm_name(self, pool: t.NodePool) -> str:
        """Return the name of the next VM of a pool."""
        self.calls["vm"] += 1
        return f"gke-{pool.name}-{self.calls['vm']}"

    def delete_vms(self, group: str, names: Sequence[str]) -> None:
        """Delete VMs of a group; others are skipped."""
        vms = self.vms[group]
        for name in names:
            if name in vms and vms[name] is None:
                vms[name] = self.looks_to_delete

    def _make_group(self, cluster: str, pool: t.NodePool, up: int = 0) -> None:
        name = f"gke-{cluster}-{pool.name}-grp"
        path = f"{PROJECT}/zones/us-central1-a/instanceGroupManagers/{name}"
        url = f"https://www.googleapis.com/compute/v1/projects/{path}"
        pool.instance_group_urls = [url]
        vms = list(self.make_vms(pool))
        self.vms[path] = dict.fromkeys(vms[: up or len(vms)])

    def make_vms(self, pool: t.NodePool) -> dict[str, int | None]:
        """Return the VMs of a new pool."""
        return {self.vm_name(pool): None for _ in range(pool.initial_node_count)}

    def _drop_groups(self, cluster: str, pool: str) -> None:
        ending = f"/gke-{cluster}-{pool or cluster}-grp"
        for group in [group for group in self.vms if group.endswith(ending)]:
            del self.vms[group]

    def _cluster(self, path: str) -> t.Cluster:
        name = path.rpartition("/clusters/")[2]
        if name not in self.clusters:
            raise Denied("NOT_FOUND", f"Not found: {path}")
        return self.clusters[name]

    def _refuse_if_busy(self, target: tuple[str, str]) -> None:
        for job in self.jobs:
            if job.looks > 0 and job.target == target:
                name = job.operation.name
                raise Denied(
                    "FAILED_PRECONDITION",
                    f"Operation {name} is currently running on it. Please wait and try"
                    " again once it is done.",
                )

    def _begin(self, kind: str, target: tuple[str, str], thing: Any) -> t.Operation:
        fate = self.fates.pop(0) if self.fates else Fate()
        thing.status = _value(type(thing).Status, "PROVISIONING")
        thing.conditions = [
            t.StatusCondition(
                code=_value(t.StatusCondition.Code, code), message=message
            )
            for code, message in fate.conditions
        ]
        for pool in getattr(thing, "node_pools", ()):
            pool.status = t.NodePool.Status.PROVISIONING
        if fate.remains:
            self._put(target, thing)
        for pool in getattr(thing, "node_pools", (thing,)) if fate.up else ():
            self._make_group(target[0], pool, fate.up)
        return self._note(kind, target, fate)

    def _end(self, kind: str, target: tuple[str, str], thing: Any) -> t.Operation:
        fate = self.fates.pop(0) if self.fates else Fate()
        thing.status = _value(type(thing).Status, "STOPPING")
        operation = self._note(kind, target, fate)

        def remove() -> None:
            self._drop_groups(*target)
            self._remove(*target)

        self.jobs[-1].then = remove
        return operation

    def _put(self, target: tuple[str, str], thing: Any) -> None:
        cluster, pool = target
        if pool:
            self.clusters[cluster].node_pools.append(thing)
        else:
            self.clusters[cluster] = thing

    def _note(self, kind: str, target: tuple[str, str], fate: Fate) -> t.Operation:
        number = len(self.jobs)
        cluster, pool = target
        link = (
            f"https://container.googleapis.com/v1/projects/1/zones/z/clusters/{cluster}"
        )
        operation = t.Operation(
            name=f"operation-{number}",
            operation_type=_value(t.Operation.Type, kind),
            status=t.Operation.Status.RUNNING,
            target_link=f"{link}/nodePools/{pool}" if pool else link,
            start_time=f"2026-01-01T00:00:{number:02}Z",
        )
        self.jobs.append(Job(operation, target, fate.looks, fate))
        return operation

    def _finish(self, job: Job) -> None:
        done: Any = t.Operation.Status.DONE
        job.operation.status = done
        if job.fate.error:
            code, message = job.fate.error
            job.operation.error.code = code
            job.operation.error.message = message
        if job.fate.info:
            reason, metadata = job.fate.info
            detail = AnyMessage()
            detail.Pack(ErrorInfo(reason=reason, metadata=metadata))
            job.operation.error.details.append(detail)
        cluster, pool = job.target
        if job.then is not None:
            if not job.fate.error:
                job.then()
        elif job.fate.remains and cluster in self.clusters:
            self._show_made(job, cluster, pool)

    def _show_made(self, job: Job, cluster: str, pool: str) -> None:
        things = [self.clusters[cluster]]
        if pool:
            things = [p for p in things[0].node_pools if p.name == pool]
        for thing in things:
            thing.status = _value(type(thing).Status, job.fate.remains)
            for inner in getattr(thing, "node_pools", ()):
                inner.status = t.NodePool.Status.RUNNING
            for made in getattr(thing, "node_pools", (thing,)):
                if not job.fate.up:
                    self._make_group(cluster, made)

    def _remove(self, cluster: str, pool: str) -> None:
        if not pool:
            self.clusters.pop(cluster, None)
            return
        pools = [p for p in self.clusters[cluster].node_pools if p.name != pool]
        self.clusters[cluster].node_pools = pools

    def _give_endpoint(self, cluster: t.Cluster) -> None:
        number = self.calls["endpoint"]
        self.calls["endpoint"] += 1
        cluster.endpoint = (
            self.endpoints.pop(0) if self.endpoints else f"10.0.0.{number}"
        )
        plane = cluster.control_plane_endpoints_config
        plane.ip_endpoints_config.private_endpoint = f"172.16.0.{number}"
        plane.dns_endpoint_config.endpoint = f"gke-{number}.us-central1.gke.goog"
        encoded = base64.b64encode(self.ca.encode()).decode()
        cluster.master_auth.cluster_ca_certificate = encoded


STOCKOUT = (
    "GCE_STOCKOUT",
    "Instance 'gke-0' creation failed: The zone 'z' does not have enough resources"
    " available to fulfill the request.",
)
EXHAUSTED = int(Code.RESOURCE_EXHAUSTED)


def check_labels(labels: Any) -> None:
    """Refuse labels as Google Cloud does."""
    for key, value in labels.items():
        if not _KEY.match(key) or not _VALUE.match(value):
            raise Denied("INVALID_ARGUMENT", f"Bad label {key}={value}")


def check_pool(pool: t.NodePool) -> None:
    """Refuse a pool as GKE does."""
    check_labels(pool.config.resource_labels)
    scale = pool.autoscaling
    if not _NAME.match(pool.name):
        raise Denied("INVALID_ARGUMENT", f"Bad node pool name {pool.name!r}")
    if pool.initial_node_count > scale.total_max_node_count:
        raise Denied("INVALID_ARGUMENT", "More nodes than autoscaling allows")
