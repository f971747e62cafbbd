# SPDX-License-Identifier: MIT
"""GkeProvider keeps the contract, in each form, with a GKE of our own on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from burst_gke import GkeSettings
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.types import NodePool

from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.testing import ProviderContract
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.plugins.gke import build
from tests.plugins.gke.backend import GkeBackend
from tests.plugins.gke.gke import Gke
from tests.plugins.gke.kubernetes import Kubernetes


class GkeContract(ProviderContract):
    patience = 20.0
    pause = 0.005

    @pytest.fixture
    def settings(self) -> GkeSettings:
        return build.settings()

    @pytest.fixture
    def make_provider(
        self,
        client: ClusterManagerClient,
        kubernetes: Kubernetes,
        settings: GkeSettings,
    ) -> MakeProvider:
        return lambda owner: build.provider(client, kubernetes, settings, owner)

    @pytest.fixture
    def backend(
        self,
        gke: Gke,
        client: ClusterManagerClient,
        kubernetes: Kubernetes,
        settings: GkeSettings,
    ) -> GkeBackend:
        def make(owner: str, name: str) -> Provider:
            return build.provider(client, kubernetes, settings, owner, name=name)

        return GkeBackend(gke, kubernetes, make, orders=not settings.pool)

    @pytest.fixture
    def make_interrupted(
        self,
        gke: Gke,
        kubernetes: Kubernetes,
        settings: GkeSettings,
        make_provider: MakeProvider,
    ) -> MakeProvider:
        def make(owner: str) -> Provider:
            gke.drops = {"create_cluster": 1, "create_node_pool": 1}
            kubernetes.crash = bool(settings.pool)
            return make_provider(owner)

        return make

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        return lambda owner, number: build.spec(tmp_path, number, owner)

    @pytest.fixture
    def misconfigured(
        self,
        client: ClusterManagerClient,
        kubernetes: Kubernetes,
    ) -> Callable[[], Provider]:
        wrong = build.settings(project="another-project")
        return lambda: build.provider(client, kubernetes, wrong)

    @pytest.fixture
    def count(self, gke: Gke, kubernetes: Kubernetes) -> Count | None:
        def count_one(spec: BurstSpec) -> int:
            return kubernetes.count(spec.burst_id) or nodes_of(gke, spec.burst_id)

        return count_one


def nodes_of(gke: Gke, burst_id: BurstId) -> int:
    """Return for how many nodes of a burst somebody pays."""
    pools = (p for cluster in gke.clusters.values() for p in cluster.node_pools)
    mine: list[NodePool] = [
        pool
        for pool in pools
        if pool.config.resource_labels.get("burst-id") == burst_id
    ]
    return sum(pool.initial_node_count for pool in mine)


class TestClusterForEachBurst(GkeContract):
    pass


class TestPoolForEachBurst(GkeContract):
    @pytest.fixture
    def settings(self, gke: Gke) -> GkeSettings:
        gke.add_cluster("shared")
        return build.settings(**build.POOL)


class TestNamedPool(GkeContract):
    @pytest.fixture
    def settings(self, gke: Gke) -> GkeSettings:
        pool = NodePool(name="burstable", status=NodePool.Status.RUNNING)
        gke.add_cluster("shared", node_pools=[pool])
        return build.settings(**build.NAMED_POOL)
