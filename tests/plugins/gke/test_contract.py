# SPDX-License-Identifier: MIT
"""GkeProvider keeps the contract, in each form, with a GKE of our own on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from burst.errors import Transient
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract
from burst.testing.backend import Moment, missing
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.plugins.gke import build
from tests.plugins.gke.build import World
from tests.plugins.gke.gke import STOCKOUT, Denied, Fate, Gke
from tests.support.interrupted import Interrupted

_METHODS = (
    *("list_clusters", "get_cluster", "list_operations"),
    *("create_cluster", "create_node_pool", "delete_cluster", "delete_node_pool"),
    "set_node_pool_autoscaling",
)


class GkeBackend(Backend):
    """What a test does to Google's service, and to the API servers of its clusters."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.gke, self.kubernetes = world.gke, world.kubernetes
        self.orders = "pool" not in world.table
        """Whether nodes are ordered of Google with each burst."""

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        for method in _METHODS:
            self.gke.denials[method] = [
                Denied("UNAVAILABLE", "Socket closed") for _ in range(100)
            ]
        self.kubernetes.trouble = Transient("no answer")
        try:
            yield
        finally:
            self.gke.denials.clear()
            self.kubernetes.trouble = None

    def full(self, owner: str) -> Provider:
        if not self.orders:
            missing("full", "a backend without free capacity")
        if self.gke.vms:
            # What exists may grow up to here.
            self.gke.room = sum(map(len, self.gke.vms.values()))
            self.kubernetes.full = True
        else:
            self.gke.fates = [Fate(conditions=[STOCKOUT], remains="ERROR")]
        return self.world.again(owner)

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        if not self.orders:
            missing("stalled", "a backend in which nothing makes progress")
        self.gke.stalled = True
        yield
        self.gke.stalled = False

    def end(self, spec: BurstSpec, host: str) -> None:
        self.kubernetes.bursts[spec.burst_id].failed[host] = "its broker has ended"

    def crashing(self, owner: str, when: Moment) -> Provider:
        if when == "before":
            return Interrupted(self.world.again(owner), self.unreachable)
        self.gke.drops = {"create_cluster": 1, "create_node_pool": 1}
        self.kubernetes.crash = not self.orders
        return self.world.again(owner)

    def named(self, owner: str, name: str) -> Provider:
        return self.world.again(owner, name)

    def left(self, spec: BurstSpec) -> Sequence[str]:
        inside = () if self.orders else self.kubernetes.bursts
        return [*self.gke.things(), *inside]


class TestClusterForEachBurst(ProviderContract):
    patience = 600.0
    pause = 0.005

    @pytest.fixture
    def place(self, world: World) -> World:
        """Where all providers of a test are."""
        return world

    @pytest.fixture
    def make_provider(self, place: World) -> MakeProvider:
        return place.again

    @pytest.fixture
    def backend(self, place: World) -> GkeBackend:
        return GkeBackend(place)

    @pytest.fixture
    def make_interrupted(self, backend: Backend) -> MakeProvider:
        return lambda owner: backend.crashing(owner, "after")

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        return lambda owner, number: build.spec(tmp_path, number, owner)

    @pytest.fixture
    def misconfigured(self, place: World) -> Callable[[], Provider]:
        return lambda: place.make(project="another-project")

    @pytest.fixture
    def count(self, place: World) -> Count | None:
        def count_one(spec: BurstSpec) -> int:
            pods = place.kubernetes.count(spec.burst_id)
            return max(pods, nodes_of(place.gke, spec.burst_id))

        return count_one


class TestPoolForEachBurst(TestClusterForEachBurst):
    @pytest.fixture
    def place(self, pooled: World) -> World:
        return pooled


class TestNamedPool(TestClusterForEachBurst):
    @pytest.fixture
    def place(self, named: World) -> World:
        return named


def nodes_of(gke: Gke, burst_id: BurstId) -> int:
    """Return for how many nodes of a burst somebody pays."""
    found = (gke.pool_of(each, burst_id) for each in gke.clusters.values())
    return sum(
        len(gke.vms[url.partition("/projects/")[2]])
        for pool in found
        if pool is not None
        for url in pool.instance_group_urls
    )
