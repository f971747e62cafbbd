# SPDX-License-Identifier: MIT
"""`burst doctor` on a provider in GKE."""

from __future__ import annotations

from typing import Any

import pytest
from burst_gke.cloud import Cloud
from google.cloud.container_v1.types import NodePool

from burst.errors import Refused
from burst.model.finding import Finding, Level
from burst.provider import Phase, Provider
from tests.plugins.gke.build import NAMED_POOL, POOL, World, settings
from tests.plugins.gke.server import Token

ACCOUNT = {"node_pool": {"config": {"service_account": "nodes@x"}}}


def examine(world: World, **table: Any) -> list[Finding]:
    world.apis = None  # its questions have a file of their own
    request = {} if "pool" in table else ACCOUNT
    known = {"max_run_duration": "24h", "request": request, **table}
    provider = world.make(**known)
    assert isinstance(provider, Provider)
    return list(provider.examine(None))


def words(found: list[Finding], level: Level) -> list[str]:
    return [f"{each.what}; {each.advice}" for each in found if each.level is level]


def test_all_well_it_says_what_it_saw(named: World) -> None:
    found = examine(named, **NAMED_POOL)
    assert {each.level for each in found} == {Level.OK}
    assert "1 clusters there" in found[0].what
    assert found[1].what == "cluster shared runs"
    assert "may do all at https://10.0.0.0" in found[2].what


@pytest.mark.parametrize(
    ("endpoint", "url", "authority"),
    [
        ("default", "https://10.0.0.0", "-----BEGIN CERTIFICATE-----"),
        ("private", "https://172.16.0.0", "-----BEGIN CERTIFICATE-----"),
        ("dns", "https://gke-0.us-central1.gke.goog", ""),
    ],
)
def test_a_cluster_has_several_addresses(
    world: World, endpoint: str, url: str, authority: str
) -> None:
    world.gke.add_cluster("shared")
    found = examine(world, endpoint=endpoint, **POOL)
    assert found[-1].what.endswith(f"may do all at {url}")
    cloud = Cloud(settings().parent, client=world.client, credentials=Token())
    cluster = cloud.cluster("shared")
    assert cluster is not None
    assert cluster.reach(endpoint) == (url, authority)


def test_an_address_that_a_cluster_lacks_is_refused(world: World) -> None:
    shared = world.gke.add_cluster("shared")
    shared.control_plane_endpoints_config.dns_endpoint_config.endpoint = ""
    with pytest.raises(Refused, match="cluster shared has no dns endpoint"):
        world.make(**POOL, endpoint="dns").observe()


def test_an_address_that_is_not_used_may_be_missing(named: World) -> None:
    """`gcloud container clusters update --no-enable-ip-access` takes it away."""
    named.gke.clusters["shared"].endpoint = ""
    with pytest.raises(Refused, match="cluster shared has no default endpoint"):
        named.provider.observe()
    named.make(**NAMED_POOL, endpoint="dns")
    named.provision()
    assert {each.phase for each in named.status().followers} == {Phase.RUNNING}
    assert [each.burst_id for each in named.provider.list_all()] == [named.name]
    named.reap()
    assert named.kubernetes.count(named.spec.burst_id) == 0


def test_what_costs_is_noted(world: World) -> None:
    found = examine(world, max_run_duration="inf", request={})
    notes = words(found, Level.NOTE)
    assert any("max_run_duration" in note for note in notes)
    assert any("node_pool.config.service_account" in note for note in notes)
    assert any("five minutes" in note for note in notes)
    world.provision()
    assert any(world.name in note for note in words(examine(world), Level.NOTE))


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"cluster": "none"}, "no cluster none; there are: shared"),
        ({"cluster": "shared", "pool": "x"}, "no node pool x; it has none"),
        ({"project": "another-project"}, "grant container.clusters.list"),
    ],
)
def test_what_is_wrong_is_named(world: World, table: dict[str, Any], says: str) -> None:
    world.gke.add_cluster("shared")
    (found,) = words(examine(world, **table), Level.WRONG)
    assert says in found


def test_a_cluster_that_does_not_run_is_wrong(world: World) -> None:
    world.gke.add_cluster("shared", "ERROR", status_message="it broke")
    (found,) = words(examine(world, **POOL), Level.WRONG)
    assert "shared is ERROR: it broke" in found


def test_an_autopilot_cluster_is_said_at_once(world: World) -> None:
    world.gke.add_cluster("shared", autopilot={"enabled": True})
    (found,) = words(examine(world, **POOL), Level.WRONG)
    assert "shared is an Autopilot cluster, which takes no node pools" in found
    assert 'type = "kube"' in found
    with pytest.raises(Refused, match="Autopilot"):
        world.make(**POOL).provision(world.spec)
    assert not world.gke.orders


def test_image_and_address_are_looked_at_before_a_cluster_exists(world: World) -> None:
    found = world.make(max_run_duration="24h").examine(world.spec.lead)
    said = " ".join(each.what for each in found)
    assert "registry.test/flux:0.88" in said
    assert "127.0.0.1" in said


def test_in_a_cluster_that_is_there_a_pod_can_try_the_way(world: World) -> None:
    lead = world.spec.lead
    (found,) = world.make(max_run_duration="24h").probe(lead, print)
    assert found.level is Level.NOTE
    assert "no cluster in which" in found.what
    assert world.make(max_run_duration="24h").probe(lead, print, "ann") == [found]
    world.gke.add_cluster("shared")
    (found,) = world.make(max_run_duration="24h", **POOL).probe(lead, print)
    assert found.what.endswith(f" {{}} reaches {lead.endpoint}")
    way, guest = world.make(max_run_duration="24h", **POOL).probe(lead, print, "ann")
    assert (way, guest.what) == (found, "ann is known there")
    pool = NodePool(name="burstable", status=NodePool.Status.RUNNING)
    world.gke.clusters["shared"].node_pools.append(pool)
    (found,) = world.make(**NAMED_POOL).probe(lead, print)
    assert "{'cloud.google.com/gke-nodepool': 'burstable'}" in found.what
