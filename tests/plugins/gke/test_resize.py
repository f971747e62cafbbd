# SPDX-License-Identifier: MIT
"""The nodes of a burst follow its size, and none with a follower is ever deleted."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from burst_gke.followers import LeavingHosts
from burst_gke.resizer import UNSEEN_S
from google.cloud.container_v1 import types as t
from google.rpc.code_pb2 import Code

from burst.errors import NotFound, Refused, SpecRefused, Transient
from burst.provider import BurstSpec, BurstStatus, Phase, Program
from tests.plugins.gke.build import World
from tests.plugins.gke.gke import Denied, Fate
from tests.plugins.gke.kubernetes import Entry

SIZES = 4


class SizedBurst:
    """A burst of up to four nodes, and what is there of it."""

    def __init__(self, world: World, nodes: int) -> None:
        self.world = world
        self.name = str(world.spec.burst_id)
        hosts = tuple(f"burst-0-{n}" for n in range(SIZES))
        ranks = tuple(range(1, SIZES + 1))
        self.all = msgspec.structs.replace(world.spec, hosts=hosts, ranks=ranks)
        world.spec = self.spec(nodes)
        world.provision()
        self.runs(nodes)

    def spec(self, nodes: int) -> BurstSpec:
        return msgspec.structs.replace(
            self.all, hosts=self.all.hosts[:nodes], ranks=self.all.ranks[:nodes]
        )

    def restart(self) -> None:
        """Have another process go on."""
        self.world.provider = self.world.again()

    @property
    def entry(self) -> Entry:
        (entry,) = self.world.kubernetes.bursts.values()
        return entry

    @property
    def pool(self) -> t.NodePool:
        pools = (p for c in self.world.gke.clusters.values() for p in c.node_pools)
        return next(pool for pool in pools if pool.name == self.name)

    @property
    def vms(self) -> dict[str, int | None]:
        (vms,) = self.world.gke.vms.values()
        return vms

    @property
    def bound(self) -> int:
        return self.pool.autoscaling.total_max_node_count

    def once(self, nodes: int) -> str:
        """Resize once; return what it said, empty if it went through."""
        try:
            self.world.provider.resize(self.spec(nodes))
        except Transient as error:
            return str(error)
        return ""

    def status(self) -> BurstStatus:
        return self.world.status()

    def listed(self) -> list[str]:
        return [follower.host for follower in self.status().followers]

    def runs(self, nodes: int) -> None:
        """Observe until so many followers run, and no others are."""
        for _ in range(20):
            status = self.status()
            if status.phase is Phase.RUNNING and len(status.followers) == nodes:
                return
        raise AssertionError(f"not {nodes} followers: {self.status()}")

    def grow(self, nodes: int) -> None:
        for _ in range(20):
            if not self.once(nodes):
                self.runs(nodes)
                return
        raise AssertionError(f"not grown: {self.once(nodes)}")

    def shrink(self, nodes: int, times: int = 30) -> None:
        """Resize as the daemon does, until the others are not listed."""
        for _ in range(times):
            said = self.once(nodes)
            if not said and len(self.listed()) == nodes:
                return
        raise AssertionError(f"not shrunk: {self.status()}")

    def at(self, nodes: int) -> dict[str, str]:
        """Return where the first so many followers run."""
        nodes_of = self.entry.nodes
        return {host: nodes_of[host] for host in self.all.hosts[:nodes]}


def calls(world: World) -> list[t.SetNodePoolAutoscalingRequest]:
    kind = t.SetNodePoolAutoscalingRequest
    return [each for each in world.gke.orders if isinstance(each, kind)]


def test_it_grows_by_the_bounds_of_its_pool_and_by_its_pods(form: World) -> None:
    sizes = SizedBurst(form, 1)
    assert f"let {sizes.name} have 3 nodes" in sizes.once(3)
    assert len(sizes.entry.spec.hosts) == 1, "a pod before the bounds"
    (request,) = calls(form)
    assert request.name.endswith(f"/nodePools/{sizes.name}")
    assert request.autoscaling.enabled
    assert request.autoscaling.total_min_node_count == 0
    assert request.autoscaling.total_max_node_count == 3
    assert request.autoscaling.location_policy.name == "ANY"
    sizes.grow(3)
    assert len(sizes.vms) == 3
    assert len(calls(form)) == 1
    form.spec = sizes.spec(3)
    form.provision()  # as after a crash: it has the new hosts
    form.reap()
    assert form.provider.observe() == []


def test_what_left_is_listed_as_long_as_its_node_costs(pooled: World) -> None:
    sizes = SizedBurst(pooled, 3)
    pooled.gke.looks_to_delete = 8
    while not any(looks is not None for looks in sizes.vms.values()):
        sizes.once(1)
        assert sizes.listed() == list(sizes.all.hosts[:3])
    while len(sizes.vms) > 1:
        left = sizes.status().followers[1:]
        assert left, "a node costs, and nobody is listed"
        assert {follower.phase for follower in left} == {Phase.ENDING}
        assert left[0].why == "its node is being deleted"
        sizes.once(1)
    sizes.shrink(1)
    assert sizes.status().phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAVAILABLE", Transient),
        ("PERMISSION_DENIED", Refused),
        ("NOT_FOUND", NotFound),
    ],
)
def test_bounds_that_gke_does_not_change_leave_the_burst(
    pooled: World, code: str, kind: type[Exception]
) -> None:
    sizes = SizedBurst(pooled, 2)
    pooled.gke.denials = {"set_node_pool_autoscaling": [Denied(code, "it says no")]}
    with pytest.raises(kind, match="it says no"):
        pooled.provider.resize(sizes.spec(4))
    assert len(sizes.entry.spec.hosts) == len(sizes.vms) == sizes.bound == 2
    sizes.runs(2)
    sizes.grow(4)


def test_while_a_follower_has_no_node_none_is_deleted(pooled: World) -> None:
    sizes = SizedBurst(pooled, 3)
    pooled.gke.stalled = True
    del sizes.entry.nodes["burst-0-0"]  # as its pod is started again
    for _ in range(8):
        sizes.once(1)
    assert len(sizes.vms) == 3
    assert "a follower has no node now" in sizes.status().followers[1].why
    pooled.gke.stalled = False
    sizes.shrink(1)
    assert set(sizes.vms) == set(sizes.at(1).values())


def test_pods_end_before_anything_of_their_nodes(pooled: World) -> None:
    pooled.kubernetes.looks_to_leave = 12
    sizes = SizedBurst(pooled, 3)
    sizes.once(1)
    while "burst-0-2" in sizes.entry.leaving:
        assert calls(pooled) == []
        assert list(sizes.vms.values()) == [None] * 3
        assert sizes.listed() == list(sizes.all.hosts[:3])
        sizes.once(1)
    sizes.shrink(1)
    assert sizes.bound == len(sizes.vms) == 1


def test_no_more_nodes_are_deleted_than_followers_left(pooled: World) -> None:
    """Two followers share a node, as they may: the burst keeps two nodes."""
    sizes = SizedBurst(pooled, 4)
    pooled.gke.stalled = True
    sizes.entry.nodes["burst-0-1"] = sizes.entry.nodes["burst-0-0"]
    sizes.shrink(2)
    assert len(sizes.vms) == 2
    assert set(sizes.at(2).values()) < set(sizes.vms)


def test_nodes_that_are_none_of_the_pools_stop_it(pooled: World) -> None:
    sizes = SizedBurst(pooled, 2)
    pooled.gke.stalled = True
    sizes.entry.nodes["burst-0-0"] = "elsewhere"
    for _ in range(8):
        sizes.once(1)
    assert len(sizes.vms) == 2
    assert "node elsewhere of a follower is not a VM" in sizes.status().why
    pooled.clock.now += UNSEEN_S + 1
    sizes.shrink(1)
    assert len(sizes.vms) == 2, "deleted on a guess"


def test_time_of_what_cannot_be_seen_begins_without_its_pods(pooled: World) -> None:
    pooled.google.failing = {"listManagedInstances": 403}
    pooled.kubernetes.looks_to_leave = 4
    sizes = SizedBurst(pooled, 2)
    sizes.once(1)
    pooled.clock.now += UNSEEN_S + 1
    for _ in range(9):
        sizes.once(1)
    assert sizes.entry.leaving == {}
    assert sizes.listed() == ["burst-0-0", "burst-0-1"]
    pooled.clock.now += UNSEEN_S + 1
    sizes.shrink(1)


def test_nodes_go_though_gke_declines_the_bounds(pooled: World) -> None:
    sizes = SizedBurst(pooled, 3)
    denied = [Denied("PERMISSION_DENIED", "no such bounds") for _ in range(30)]
    pooled.gke.denials = {"set_node_pool_autoscaling": denied}
    kept = sizes.at(1)
    sizes.shrink(1)
    assert set(sizes.vms) == set(kept.values())
    assert len(denied) < 30


def test_a_growth_of_nothing_is_taken_back_without_certificate(pooled: World) -> None:
    sizes = SizedBurst(pooled, 1)
    sizes.once(3)
    Path(sizes.all.lead.certificate).unlink()
    with pytest.raises(Refused, match="no such file"):
        pooled.provider.resize(sizes.spec(3))
    sizes.shrink(1)
    assert sizes.bound == len(sizes.vms) == 1


def test_an_isolated_burst_keeps_its_size(pooled: World) -> None:
    sizes = SizedBurst(pooled, 2)
    program = Program(kind="interactive")
    isolated = msgspec.structs.replace(sizes.spec(1), program=program)
    with pytest.raises(SpecRefused, match="isolated"):
        pooled.provider.resize(isolated)
    assert len(sizes.vms) == 2
    assert sizes.entry.noted == LeavingHosts()


def test_who_may_not_delete_nodes_leaves_it_to_the_autoscaler(pooled: World) -> None:
    sizes = SizedBurst(pooled, 3)
    pooled.google.failing = {"deleteInstances": 403}
    for _ in range(9):
        assert sizes.once(1) == "" or len(calls(pooled)) == 1
    assert len(sizes.vms) == len(sizes.listed()) == 3
    why = sizes.status().why
    assert "may not delete its node: no deleteInstances for you; GKE's autosc" in why
    (group,) = pooled.gke.vms
    pooled.gke.delete_vms(group, [sizes.entry.spec.burst_id, *_unused(sizes)[:1]])
    for _ in range(3):
        sizes.once(1)
    assert len(sizes.listed()) == 2
    pooled.gke.delete_vms(group, _unused(sizes))
    sizes.shrink(1)


def _unused(sizes: SizedBurst) -> list[str]:
    return [name for name in sizes.vms if name not in sizes.entry.nodes.values()]


def test_a_clock_that_is_set_back_does_not_keep_nodes_that_cannot_be_seen(
    pooled: World,
) -> None:
    pooled.google.failing = {"listManagedInstances": 403}
    sizes = SizedBurst(pooled, 2)
    for _ in range(9):
        sizes.once(1)
    pooled.clock.now -= 86400
    sizes.once(1)
    assert sizes.listed() == ["burst-0-0", "burst-0-1"]
    pooled.clock.now += UNSEEN_S + 1
    sizes.once(1)
    assert sizes.listed() == ["burst-0-0"]


@pytest.mark.parametrize("lacks", ["right", "all", "groups"])
def test_nodes_that_cannot_be_seen_count_as_long_as_they_may_exist(
    pooled: World, lacks: str
) -> None:
    pooled.google.failing = {"listManagedInstances": 403}
    if lacks == "all":
        pooled.apis = None
        pooled.provider = pooled.again()
    sizes = SizedBurst(pooled, 2)
    if lacks == "groups":
        sizes.pool.instance_group_urls = []
        pooled.gke.stalled = True
    for _ in range(9):
        sizes.once(1)
    assert sizes.listed() == ["burst-0-0", "burst-0-1"]
    assert "its node cannot be seen" in sizes.status().why
    pooled.clock.now += UNSEEN_S - 1
    sizes.restart()
    sizes.once(1)
    assert len(sizes.listed()) == 2
    pooled.clock.now += 2
    sizes.shrink(1)
    assert sizes.entry.noted.hosts == ()


def test_a_cluster_without_its_pool_is_not_resized(world: World) -> None:
    sizes = SizedBurst(world, 2)
    cluster = world.gke.clusters[sizes.name]
    cluster.node_pools[0].name = "another"
    with pytest.raises(Refused, match="has no node pool"):
        world.provider.resize(sizes.spec(1))


@pytest.mark.parametrize("seed", range(2))
def test_whatever_goes_wrong_no_follower_loses_its_node(form: World, seed: int) -> None:
    """SizedBurst, crashes, lost answers and denials by chance."""
    chance = random.Random(seed)
    sizes = SizedBurst(form, 2)
    (group,) = form.gke.vms
    nodes = 2
    form.google.page = 1
    for _ in range(12):
        wanted = chance.randint(1, SIZES)
        kept = sizes.at(min(nodes, wanted))
        form.google.lost = chance.sample(["deleteInstances", "listManagedInstances"], 1)
        form.gke.drops = {"set_node_pool_autoscaling": chance.randint(0, 1)}
        form.google.failing = {"Instances": 503} if chance.random() < 0.3 else {}
        fails = Fate(error=(int(Code.INTERNAL), "internal"))
        form.gke.fates = chance.sample([fails, Fate(looks=6), Fate()], 2)
        for _ in range(chance.randint(0, 6)):
            sizes.once(wanted)
            if chance.random() < 0.3:
                sizes.restart()
            if chance.random() < 0.2:
                # GKE's own autoscaler.
                form.gke.delete_vms(group, _unused(sizes)[:1])
            assert len(sizes.listed()) >= min(len(sizes.vms), wanted)
        form.google.failing = {}
        sizes.shrink(wanted) if wanted < nodes else sizes.grow(wanted)
        nodes = wanted
        assert sizes.at(len(kept)) == kept, "a follower has lost its node"
        assert len(sizes.vms) == sizes.bound == nodes
        assert sizes.entry.noted.hosts == ()
    for _ in range(3):
        sizes.once(1)
    form.spec = sizes.spec(nodes)
    form.reap()
    assert form.gke.vms == {}
