# SPDX-License-Identifier: MIT
"""GkeProvider keeps the contract, in each form, with a GKE of our own on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from burst_gke import GkeSettings
from burst_gke.apis import GoogleApis
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
    patience = 90.0
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
        apis: GoogleApis,
    ) -> MakeProvider:
        return lambda owner: build.provider(
            client, kubernetes, settings, owner, apis=apis
        )

    @pytest.fixture
    def backend(
        self,
        gke: Gke,
        client: ClusterManagerClient,
        kubernetes: Kubernetes,
        settings: GkeSettings,
        apis: GoogleApis,
    ) -> GkeBackend:
        def make(owner: str, name: str) -> Provider:
            return build.provider(
                client, kubernetes, settings, owner, name=name, apis=apis
            )

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
            pods = kubernetes.count(spec.burst_id)
            return max(pods, nodes_of(gke, spec.burst_id))

        return count_one


def nodes_of(gke: Gke, burst_id: BurstId) -> int:
    """Return for how many nodes of a burst somebody pays."""
    found = (gke.pool_of(each, burst_id) for each in gke.clusters.values())
    return sum(
        len(gke.vms[url.partition("/projects/")[2]])
        for pool in found
        if pool is not None
        for url in pool.instance_group_urls
    )


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
