# SPDX-License-Identifier: MIT
"""Taking a burst down until nothing that costs is left, whatever stands in the way."""

from __future__ import annotations

import pytest
from google.rpc.code_pb2 import Code

from burst.errors import Refused, Transient
from burst.provider import Phase
from tests.plugins.gke.build import World, orders
from tests.plugins.gke.gke import Denied, Fate

DELETE = "delete_cluster", "delete_node_pool"


def deletions(world: World) -> int:
    return sum(world.gke.calls[name] for name in DELETE)


def test_pods_that_do_not_leave_are_deleted_by_force(form: World) -> None:
    form.kubernetes.looks_to_leave = 1000
    form.provision()
    form.provider.reap(form.spec.burst_id)
    assert deletions(form) == 0
    form.provider.force_reap(form.spec.burst_id)
    assert form.kubernetes.count(form.spec.burst_id) == 0
    assert deletions(form) == 1


def test_while_it_goes_it_is_listed_as_ending_and_deleted_once(form: World) -> None:
    form.provision()
    form.gke.fates = [Fate(looks=12)]
    for _ in range(4):
        form.provider.reap(form.spec.burst_id)
    assert form.status().phase is Phase.ENDING
    form.reap()
    assert deletions(form) == 1


def test_a_cluster_that_never_had_an_address_is_deleted(world: World) -> None:
    world.gke.fates = [Fate(error=(int(Code.INTERNAL), "it broke"), remains="ERROR")]
    world.provision()
    (cluster,) = world.gke.clusters.values()
    cluster.endpoint = ""
    assert world.status().phase is Phase.FAILED
    world.reap()
    assert world.gke.clusters == {}


def test_a_deletion_that_fails_is_asked_for_again(form: World) -> None:
    form.provision()
    form.gke.fates = [Fate(error=(int(Code.INTERNAL), "could not"))]
    for _ in range(4):
        form.provider.reap(form.spec.burst_id)
    for thing in form.gke.things().values():
        thing.status = type(thing).Status.ERROR
    form.reap()
    assert deletions(form) == 2
    assert form.gke.things() == {}


def test_reaped_while_it_is_made_it_goes_once_it_can(form: World) -> None:
    form.gke.fates = [Fate(looks=8)]
    with pytest.raises(Transient):
        form.provider.provision(form.spec)
    said = form.reap()
    assert any("currently running" in words for words in said)
    assert form.gke.things() == {}


def test_what_a_list_does_not_show_yet_is_not_forgotten(world: World) -> None:
    world.provision()
    world.gke.unlisted = {world.name}
    with pytest.raises(Transient):
        world.provider.provision(world.spec)
    world.reap()
    assert world.gke.clusters == {}
    assert orders(world) == 1


def test_gone_between_two_looks_is_gone(form: World) -> None:
    form.provision()
    form.gke.denials = {name: [Denied("NOT_FOUND", "gone")] for name in DELETE}
    form.reap()
    assert form.gke.things() == {}


def test_of_a_shared_cluster_only_the_pool_goes(world: World) -> None:
    world.share("other")
    world.provision()
    world.reap()
    assert [p.name for p in world.gke.clusters["shared"].node_pools] == ["other"]


def test_with_a_shared_cluster_its_bursts_are_gone(pooled: World) -> None:
    pooled.provision()
    del pooled.gke.clusters["shared"]
    assert pooled.provider.observe() == []
    assert pooled.reap() == []


def test_bursts_are_found_though_settings_name_another_cluster(pooled: World) -> None:
    pooled.gke.add_cluster("newer")
    pooled.provision()
    pooled.make(cluster="newer")
    status = pooled.status()
    assert status.phase is Phase.RUNNING
    pooled.reap()
    assert pooled.gke.things() == {}


def test_one_api_server_in_trouble_hides_no_other_burst(world: World) -> None:
    world.provision()
    world.kubernetes.trouble = Transient("no answer")
    status = world.status()
    assert status.phase is Phase.PENDING
    assert status.why == "no answer"


def test_a_shared_one_in_trouble_may_hide_bursts(pooled: World) -> None:
    pooled.provision()
    pooled.kubernetes.trouble = Transient("no answer")
    with pytest.raises(Transient, match="no answer"):
        pooled.provider.observe()


@pytest.mark.parametrize("method", ["list_clusters", "list_operations"])
def test_a_project_that_is_not_found_does_not_mean_a_burst_that_is_gone(
    form: World, method: str
) -> None:
    form.gke.denials = {method: [Denied("NOT_FOUND", "no such project")]}
    with pytest.raises(Refused, match="no such project"):
        form.provider.reap(form.spec.burst_id)
