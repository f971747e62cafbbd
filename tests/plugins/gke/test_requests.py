# SPDX-License-Identifier: MIT
"""Settings as the messages that GKE gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_gke.requests import (
    cluster_request,
    life_of,
    node_pool_request,
    pod_settings,
    with_lease,
)
from burst_gke.resources import Labels
from google.cloud.container_v1.types import (
    Cluster,
    CreateClusterRequest,
    CreateNodePoolRequest,
    NodePool,
    NodeTaint,
    WorkloadMetadataConfig,
)

from burst.provider import BurstSpec
from tests.plugins.gke.build import NAMED_POOL, OFFER, POOL, settings, spec
from tests.support.pod_words import pod_words

NOW = 1_800_000_000.0
NODES = {"max_run_duration": "2h"}
LABELS = {"resource_labels": {"team": "x"}}
ACCOUNT = "nodes@some-project.iam.gserviceaccount.com"
POOL_PART = {
    "config": {
        "tags": ["flux"],
        "disk_size_gb": 50,
        "service_account": ACCOUNT,
        **LABELS,
    }
}
CLUSTER_PART = {
    **LABELS,
    "network": "net",
    "subnetwork": "sub",
    "ip_allocation_policy": {"cluster_secondary_range_name": "pods"},
}
ALL = {**NODES, "request": {"cluster": CLUSTER_PART, "node_pool": POOL_PART}}


@pytest.fixture
def burst(tmp_path: Path) -> BurstSpec:
    return spec(tmp_path)


def labels_of(burst: BurstSpec) -> dict[str, str]:
    return Labels(burst.owner, "gke").labels_of(burst, "abc123")


def order_cluster(burst: BurstSpec, **table: Any) -> Cluster:
    order = cluster_request(settings(**table), burst, labels_of(burst), NOW)
    request = CreateClusterRequest(order)
    assert (
        request.parent
        == f"projects/some-project/locations/{table.get('location', 'us-central1-a')}"
    )
    return request.cluster


def order_pool(burst: BurstSpec, **table: Any) -> NodePool:
    order = node_pool_request(settings(**POOL, **table), burst, labels_of(burst), NOW)
    request = CreateNodePoolRequest(order)
    assert request.parent.endswith("/clusters/shared")
    return request.node_pool


def test_a_cluster_has_one_pool_with_all_nodes(burst: BurstSpec) -> None:
    cluster = order_cluster(burst)
    (pool,) = cluster.node_pools
    assert cluster.name == pool.name == burst.burst_id
    assert pool.initial_node_count == 2
    scale = pool.autoscaling
    assert (scale.enabled, scale.total_min_node_count) == (True, 0)
    assert scale.total_max_node_count == 2
    assert not scale.max_node_count, "GKE takes one kind of bounds"
    assert pool.config.machine_type == "n2-standard-8"
    assert not pool.config.spot
    assert not pool.config.taints
    assert not pool.config.max_run_duration
    assert pool.management.auto_upgrade, "or GKE refuses it in a release channel"


def test_cluster_pool_and_vms_bear_our_labels(burst: BurstSpec) -> None:
    ours = labels_of(burst)
    cluster = order_cluster(burst, **ALL)
    wanted = {**ours, "team": "x"}
    assert dict(cluster.resource_labels) == wanted
    assert dict(cluster.node_pools[0].config.resource_labels) == wanted
    assert dict(cluster.node_pools[0].config.labels) == ours
    own = order_pool(burst, request={"node_pool": POOL_PART})
    assert dict(own.config.resource_labels) == wanted
    assert dict(order_pool(burst).config.resource_labels) == ours


def test_pods_never_get_the_nodes_credentials(burst: BurstSpec) -> None:
    cluster = order_cluster(burst)
    config = cluster.node_pools[0].config
    assert cluster.workload_identity_config.workload_pool == "some-project.svc.id.goog"
    mode = WorkloadMetadataConfig.Mode.GKE_METADATA
    assert config.workload_metadata_config.mode == mode
    assert all("cloud-platform" not in scope for scope in config.oauth_scopes)


def test_tables_of_the_request_are_merged(burst: BurstSpec) -> None:
    cluster = order_cluster(burst, **ALL)
    assert (cluster.network, cluster.subnetwork) == ("net", "sub")
    policy = cluster.ip_allocation_policy
    assert policy.use_ip_aliases
    assert policy.cluster_secondary_range_name == "pods"
    config = cluster.node_pools[0].config
    assert config.machine_type == "n2-standard-8"
    assert config.service_account == ACCOUNT
    assert config.max_run_duration.total_seconds() == 7200
    own = order_pool(burst, request={"node_pool": POOL_PART})
    assert list(own.config.tags) == ["flux"]
    assert own.config.taints


@pytest.mark.parametrize(("endpoint", "by_name"), [("private", False), ("dns", True)])
def test_private_nodes_and_who_may_call_their_cluster(
    burst: BurstSpec, endpoint: str, by_name: bool
) -> None:
    by_address = {"enabled": True, "enable_public_endpoint": False}
    part = {
        "network_config": {"default_enable_private_nodes": True},
        "control_plane_endpoints_config": {"ip_endpoints_config": by_address},
    }
    cluster = order_cluster(burst, endpoint=endpoint, request={"cluster": part})
    assert cluster.network_config.default_enable_private_nodes
    plane = cluster.control_plane_endpoints_config
    assert plane.ip_endpoints_config.enabled
    assert not plane.ip_endpoints_config.enable_public_endpoint
    assert plane.dns_endpoint_config.allow_external_traffic is by_name


def test_without_a_word_of_networks_none_is_in_the_order(burst: BurstSpec) -> None:
    cluster = order_cluster(burst)
    assert "network_config" not in cluster
    assert "control_plane_endpoints_config" not in cluster
    assert "network_config" not in order_pool(burst)


def test_the_nodes_of_a_region_are_in_one_zone(burst: BurstSpec) -> None:
    region = {"location": "us-central1", "zone": "us-central1-b"}
    cluster = order_cluster(burst, **region)
    assert list(cluster.locations) == ["us-central1-b"]
    assert list(cluster.node_pools[0].locations) == ["us-central1-b"]
    assert cluster.node_pools[0].initial_node_count == 2


def test_a_pool_without_a_zone_begins_empty(burst: BurstSpec) -> None:
    """Since it would get so many nodes in each zone."""
    pool = order_pool(burst, location="us-central1")
    assert pool.initial_node_count == 0
    assert pool.autoscaling.total_max_node_count == 2
    assert not pool.locations


def test_a_pool_of_its_own_keeps_others_away(burst: BurstSpec) -> None:
    (taint,) = order_pool(burst).config.taints
    assert (taint.key, taint.value) == ("burst", burst.burst_id)
    assert taint.effect == NodeTaint.Effect.NO_SCHEDULE
    found = pod_settings(settings(**POOL), burst)
    placed = found.pod["spec"]
    chosen = {"cloud.google.com/gke-nodepool": burst.burst_id}
    assert placed["nodeSelector"] == chosen
    assert [t["value"] for t in placed["tolerations"]] == [burst.burst_id]


def test_pods_go_where_their_burst_is(burst: BurstSpec) -> None:
    own = settings()
    assert pod_settings(own, burst) is own
    given = pod_words(nodeSelector={"a": "b"})
    found = pod_settings(settings(**NAMED_POOL, pod=given), burst)
    assert found.pod["spec"] == {
        "nodeSelector": {"a": "b", "cloud.google.com/gke-nodepool": "burstable"}
    }


def test_spot_and_gpus(burst: BurstSpec) -> None:
    machine = {
        "machine_type": "g2-standard-4",
        "max_nodes": 2,
        "gpus": 1,
        "accelerator": "nvidia-l4",
        "spot": True,
    }
    config = order_pool(burst, offers={OFFER: machine}).config
    (accelerator,) = config.accelerators
    assert config.spot
    assert accelerator.accelerator_type == "nvidia-l4"
    assert accelerator.accelerator_count == 1


@pytest.mark.parametrize(
    ("lease", "limit", "seconds"),
    [
        (0, "inf", 0),
        (0, "2h", 7200),
        (3600, "2h", 3600),
        (9000, "2h", 7200),
        (-5, "inf", 30),  # it was over before it began
        (200 * 86400, "inf", 120 * 86400),
    ],
)
def test_google_ends_what_nobody_ends(
    burst: BurstSpec, lease: float, limit: str, seconds: int
) -> None:
    lent = msgspec.structs.replace(burst, lease_end=NOW + lease if lease else 0.0)
    found = settings(max_run_duration=limit)
    assert life_of(found, lent, NOW) == seconds
    # The pods end with their nodes, or new nodes would be made for them.
    ends = with_lease(found, lent, NOW).lease_end
    assert ends == (NOW + seconds if seconds else 0.0)
