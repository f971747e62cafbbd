# SPDX-License-Identifier: MIT
"""A burst of GkeProvider has pods in a real Kubernetes, and leaves nothing.

GKE is our own on loopback, and each cluster that it makes is kubelab's: what is tried
here is the way from Google's answer (address, authority, token) to objects and back.
It keeps the contract in `tests/plugins/gke/test_contract.py`, and its pods do in
`test_provider_kube.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_gke.apis import GoogleApis
from burst_gke.cloud import Cloud
from burst_gke.provider import Dependencies, GkeProvider
from burst_gke.settings import GkeSettings
from google.cloud.container_v1.types import NodePool

from burst.provider import BurstSpec
from burst.testing.fixtures import ContractFixtures, Count, MakeProvider, MakeSpec
from burst.testing.trial import Trial
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace, played_nodes
from tests.kubernetes.api import Api
from tests.plugins.gke import build
from tests.plugins.gke.apis import Google, Services
from tests.plugins.gke.apis import serve as serve_apis
from tests.plugins.gke.gke import PROJECT, Gke
from tests.plugins.gke.server import Service, Token, connect, serve
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def place(lab: Cluster) -> Iterator[str]:
    """One namespace for all, as each test has an owner of its own."""
    with new_namespace(lab, "gke") as name:
        yield name


class LabGke(Gke):
    """A GKE whose clusters all have kubelab's API server, and as VMs its nodes."""

    def __init__(self, lab: Cluster, api: Api) -> None:
        address = lab.url.removeprefix("https://")
        super().__init__(
            ca=Path(lab.pki["ca.crt"]).read_text(), endpoints=[address] * 99
        )
        self._nodes = played_nodes(api)

    def make_vms(self, pool: NodePool) -> dict[str, int | None]:
        return dict.fromkeys(self._nodes)


class TestClusterForEachBurst(ContractFixtures):
    patience = prompt = HANG_S
    pause = 0.02

    @pytest.fixture
    def gke(self, lab: Cluster, api: Api) -> Gke:
        return LabGke(lab, api)

    @pytest.fixture
    def apis(self, gke: Gke) -> Iterator[GoogleApis]:
        with serve_apis(Services(Google(gke=gke))) as addresses:
            yield GoogleApis(PROJECT, lambda: "token-1", addresses)

    @pytest.fixture
    def cloud(self, gke: Gke, lab: Cluster, settings: GkeSettings) -> Iterator[Cloud]:
        token = Token(lab.tokens["admin"])
        with serve(Service(gke)) as address, connect(address) as client:
            yield Cloud(settings.parent, client=client, credentials=token)

    @pytest.fixture
    def make_provider(
        self, cloud: Cloud, settings: GkeSettings, apis: GoogleApis
    ) -> MakeProvider:
        dependencies = Dependencies(cloud, apis=apis)
        return lambda owner: GkeProvider("gke", settings, owner, dependencies)

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        return lambda owner, number: build.spec(tmp_path, number, owner)

    @pytest.fixture
    def count(self, api: Api, place: str, gke: Gke) -> Count | None:
        def pods(spec: BurstSpec) -> int:
            selector = f"burst.flux-framework.org/id={spec.burst_id}"
            path = f"/api/v1/namespaces/{place}/pods?labelSelector={selector}"
            left = any(spec.burst_id in path for path in gke.things())
            return len(api.items(path)) or int(left)

        return pods

    @pytest.fixture
    def settings(self, place: str) -> GkeSettings:
        table = {"namespace": place, "user": 1000, "one_per_node": False}
        return build.settings(**table)

    def test_it_runs_shrinks_to_the_nodes_of_its_followers_and_leaves_nothing(
        self, spec: BurstSpec, trial: Trial, gke: Gke, api: Api, place: str
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        hosts, ranks = spec.hosts[:1], spec.ranks[:1]
        small = msgspec.structs.replace(spec, hosts=hosts, ranks=ranks)
        (vms,) = gke.vms.values()
        assert len(vms) > 1

        def shrunk() -> bool:
            trial.resize(small)
            (listed,) = trial.observe().values()
            return {follower.host for follower in listed.followers} == set(hosts)

        trial.wait(shrunk, "to shrink")
        selector = f"burst.flux-framework.org/id={spec.burst_id}"
        (pod,) = api.items(f"/api/v1/namespaces/{place}/pods?labelSelector={selector}")
        assert set(vms) == {pod["spec"]["nodeName"]}
        trial.reap_all(spec.burst_id)
        trial.wait_empty(spec)
