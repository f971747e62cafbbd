# SPDX-License-Identifier: MIT
"""What a site may say of GKE, and what it is told where that cannot be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from burst_gke.settings import offers_of

from burst.errors import ConfigError
from tests.plugins.gke.build import NAMED_POOL, OFFER, POOL, settings

PART = {"network": "projects/host/global/networks/net"}
CLUSTER_PART = {"request": {"cluster": PART}}
POOL_PART = {"request": {"node_pool": {"config": {"disk_size_gb": 50}}}}


def one_offer(**table: Any) -> dict[str, Any]:
    return {
        "offers": {OFFER: {"machine_type": "n2-standard-8", "max_nodes": 4, **table}}
    }


def labels(key: str, value: Any) -> dict[str, Any]:
    return {"request": {"cluster": {"resource_labels": {key: value}}}}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"project": ""}, "project: is empty"),
        ({"location": "mars"}, "neither a zone such as us-central1-a nor a region"),
        ({"location": "us-central1"}, "zone: name the zone"),
        ({"location": "us-central1", "zone": "us-east1-b"}, "is not in 'us-central1'"),
        ({"zone": "us-central1-b"}, "is not in 'us-central1-a'"),
        ({"pool": "x"}, "pool: name the cluster"),
        (
            labels("burst-owner", "me"),
            "burst-owner: begins with burst-",
        ),
        (labels("Team", "x"), "request.cluster.resource_labels.Team: keys and values"),
        (labels("team", "X Y"), "request.cluster.resource_labels.team: keys and"),
        (labels("team", 1), "request.cluster.resource_labels.team: keys and values"),
        (
            {"request": {"node_pool": {"config": {"resource_labels": {"Team": "x"}}}}},
            "request.node_pool.config.resource_labels.Team: keys and values",
        ),
        (
            {"request": {"cluster": {"resource_labels": "team"}}},
            "request.cluster.resource_labels: expected a table",
        ),
        ({"max_run_duration": "200d"}, "30s to 120d"),
        ({"machine": "x"}, "machine: no such key"),
        ({"cluster_fee": 0.2}, "cluster_fee: is gone; remove it: a cluster costs 0.1"),
        (one_offer(price=math.inf), "price"),
        ({"offers": {}}, "at least one machine_type"),
        (one_offer(machine_type="e2-medium"), "'e2-medium' does not tell"),
        (one_offer(gpus=1), "set both or none"),
        (one_offer(accelerator="nvidia-l4"), "set both or none"),
        (one_offer(reservation="r"), "request.node_pool: config.reservation_affinity"),
        ({**POOL, **CLUSTER_PART}, "request.cluster: is for clusters made for bursts"),
        ({**NAMED_POOL, **POOL_PART}, "request.node_pool: is for nodes made"),
        (
            {"request": {"cluster": {"node_pools": []}}},
            "request.cluster.node_pools: use request.node_pool",
        ),
        (
            {"request": {"node_pool": {"autoscaling": {}}}},
            "request.node_pool.autoscaling: is set by burst",
        ),
        (
            {"request": {"node_pool": {"config": {"spot": True}}}},
            "request.node_pool.config.spot: follows from the offer's table",
        ),
        ({"request": {"node_pool": {"config": 1}}}, "node_pool.config: expected a t"),
        (
            {"request": {"cluster": {"network_config": True}}},
            "cluster.network_config: expected a table",
        ),
        (
            {"request": {"node_pool": {"config": {"disk_size_gb": "1"}}}},
            "disk_size_gb: expected a whole number",
        ),
        ({"network": "n"}, "network: is gone; write it in the words of Google's API"),
        ({"labels": {}}, "labels: is gone; write it in the words of Google's API"),
        ({"disk_gb": 1}, "in request.node_pool: config.disk_size_gb"),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**table)
    assert says in str(caught.value)
    assert str(caught.value).startswith("providers.gke")


def test_nodes_are_private_by_the_cluster_or_by_the_pool() -> None:
    cluster = {"network_config": {"default_enable_private_nodes": True}}
    pool = {"network_config": {"enable_private_nodes": False}}
    assert settings(request={"cluster": cluster}).private_nodes
    assert not settings(request={"cluster": cluster, "node_pool": pool}).private_nodes
    assert not settings().private_nodes


@pytest.mark.parametrize(
    ("machine_type", "cores", "cpu"),
    [
        ("n2-standard-8", 4, ""),
        ("c3d-highcpu-30-lssd", 15, ""),
        ("t2d-standard-4", 4, "2000m"),
        ("n1-standard-1", 1, ""),
    ],
)
def test_cores_are_those_that_flux_counts_and_pods_leave_room_for_those_of_gke(
    machine_type: str, cores: int, cpu: str
) -> None:
    found = settings(**one_offer(machine_type=machine_type))
    (offer,) = offers_of(found)
    assert (offer.shape.cores, found.machine(OFFER).cpu) == (cores, cpu)
    own = one_offer(machine_type=machine_type, cpu="3", cores=6)
    mine = settings(**own).machine(OFFER)
    assert (mine.cores, mine.cpu) == (6, "3")


def test_a_cluster_that_is_made_has_a_fee_whatever_its_nodes() -> None:
    def fees(**table: Any) -> list[float]:
        return [offer.fee for offer in offers_of(settings(**table))]

    assert fees() == [0.10]
    assert fees(**POOL) == fees(**NAMED_POOL) == [0.0]


@pytest.mark.parametrize(("limit", "lifetime"), [("2h", 7200.0), ("inf", 0.0)])
def test_a_burst_is_over_before_google_deletes_its_nodes(
    limit: str, lifetime: float
) -> None:
    """The daemon drains a burst by this; otherwise its jobs would be killed."""
    (offer,) = offers_of(settings(max_run_duration=limit))
    assert offer.lifetime == lifetime
