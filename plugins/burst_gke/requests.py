# SPDX-License-Identifier: MIT
"""The requests that make clusters and node pools, as plain values.

Their keys are those of google.container.v1 CreateClusterRequest, CreateNodePoolRequest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from burst.provider import BurstSpec
from burst_gke.request_overlay import merge
from burst_gke.settings import LONGEST_RUN_S, SHORTEST_RUN_S, GkeSettings, MachineTable

Request = dict[str, Any]

# To pull images, to write logs and metrics. Jobs on a node can use these scopes too, so
# there are no others.
_SCOPES = tuple(
    f"https://www.googleapis.com/auth/{scope}"
    for scope in ("devstorage.read_only", "logging.write", "monitoring.write")
)
TAINT = "burst"
"""A taint that keeps other pods off a pool that is deleted with its burst."""


def cluster_request(
    settings: GkeSettings, spec: BurstSpec, labels: Mapping[str, str], now: float
) -> Request:
    """Return the request for a cluster of the burst's own, with one pool."""
    pool = _pool(settings, spec, labels, now)
    pool["config"]["workload_metadata_config"] = {"mode": "GKE_METADATA"}
    workloads = f"{settings.project}.svc.id.goog"
    cluster: Request = {
        "name": settings.name_of(spec.burst_id),
        "description": f"Followers of {spec.owner}, made by burst",
        "resource_labels": dict(labels),
        "node_pools": [pool],
        "ip_allocation_policy": {"use_ip_aliases": True},
        # Pods then get credentials of their own, not the node's.
        "workload_identity_config": {"workload_pool": workloads},
    }
    if settings.zone:
        cluster["locations"] = [settings.zone]
    if settings.endpoint == "dns":
        # Otherwise only its own network could connect to it.
        by_name = {"dns_endpoint_config": {"allow_external_traffic": True}}
        cluster["control_plane_endpoints_config"] = by_name
    cluster = merge(cluster, settings.request.cluster)
    return {"parent": settings.parent, "cluster": cluster}


def node_pool_request(
    settings: GkeSettings, spec: BurstSpec, labels: Mapping[str, str], now: float
) -> Request:
    """Return the request for a node pool of the burst's own in the named cluster."""
    pool = _pool(settings, spec, labels, now)
    taint = {"key": TAINT, "value": spec.burst_id, "effect": "NO_SCHEDULE"}
    pool["config"]["taints"] = [taint]
    parent = f"{settings.parent}/clusters/{settings.cluster}"
    return {"parent": parent, "node_pool": pool}


def _pool(
    settings: GkeSettings, spec: BurstSpec, labels: Mapping[str, str], now: float
) -> Request:
    nodes = len(spec.hosts)
    machine = settings.machine(spec.offer)
    pool: Request = {
        "name": settings.name_of(spec.burst_id),
        # All nodes at once, so that a stock-out is reported while the pool is made. If
        # GKE chooses the zone, the pool begins without nodes and the autoscaler adds
        # them: otherwise GKE would make this number in each zone.
        "initial_node_count": nodes if settings.node_zone else 0,
        "autoscaling": autoscaling(nodes),
        # Clusters in a release channel, as they are by default, accept nothing else.
        "management": {"auto_upgrade": True, "auto_repair": True},
        "config": _node(machine, labels),
    }
    if settings.zone:
        pool["locations"] = [settings.zone]
    life = life_of(settings, spec, now)
    if life:
        pool["config"]["max_run_duration"] = timedelta(seconds=life)
    found: Request = merge(pool, settings.request.node_pool)
    return found


def autoscaling(nodes: int) -> Request:
    """Return the autoscaling bounds of a pool for this number of followers.

    The minimum is 0, so that nodes without pods end even if no daemon deletes them.
    """
    return {
        "enabled": True,
        "total_min_node_count": 0,
        "total_max_node_count": nodes,
        "location_policy": "ANY",
    }


def _node(machine: MachineTable, labels: Mapping[str, str]) -> Request:
    node: Request = {
        "machine_type": machine.machine_type,
        "spot": machine.spot,
        "oauth_scopes": list(_SCOPES),
        "resource_labels": dict(labels),
        "labels": dict(labels),
    }
    if machine.gpus:
        node["accelerators"] = [
            {
                "accelerator_type": machine.accelerator,
                "accelerator_count": machine.gpus,
                "gpu_driver_installation_config": {"gpu_driver_version": "DEFAULT"},
            }
        ]
    return node


def with_lease(settings: GkeSettings, spec: BurstSpec, now: float) -> BurstSpec:
    """Return the spec for the burst's pods, which end when their nodes are deleted.

    Otherwise Kubernetes would make new pods, and GKE's autoscaler new nodes for them.
    """
    life = life_of(settings, spec, now)
    return msgspec.structs.replace(spec, lease_end=now + life) if life else spec


def life_of(settings: GkeSettings, spec: BurstSpec, now: float) -> int:
    """Return after how many seconds Google is to delete the nodes; 0 for never."""
    lease = spec.lease_end - now if spec.lease_end else math.inf
    life = min(settings.max_run_duration, lease)
    if life == math.inf:
        return 0
    return int(min(LONGEST_RUN_S, max(SHORTEST_RUN_S, life)))


def pod_settings(settings: GkeSettings, spec: BurstSpec) -> GkeSettings:
    """Return the settings for the burst's pods, which select the burst's nodes."""
    if not settings.cluster:
        return settings
    placed = on_pool(settings, settings.pool or settings.name_of(spec.burst_id))
    if settings.pool:
        return placed
    ours = {"key": TAINT, "operator": "Equal", "value": spec.burst_id}
    return placed.with_pod_spec({"tolerations": [ours]})


def on_pool(settings: GkeSettings, pool: str) -> GkeSettings:
    """Return the settings for pods on the nodes of one pool."""
    selector = {"cloud.google.com/gke-nodepool": pool}
    return settings.with_pod_spec({"nodeSelector": selector})
