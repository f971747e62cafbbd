# SPDX-License-Identifier: MIT
"""A burst of EksProvider has pods in a real Kubernetes, and leaves nothing.

EKS is moto's, and its cluster is kubelab's: what is tried here is the way from the
answer of AWS (address, authority) to pods on the nodes of one node group, and back. It
keeps the contract in `tests/plugins/eks/test_contract.py`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_eks.cloud import EksCloud
from burst_eks.groups import name_of
from burst_eks.provider import EksDependencies, EksProvider
from burst_eks.settings import EksSettings

from burst.kits.pods import Tags
from burst.provider import BurstSpec
from burst.testing.fixtures import MakeProvider
from burst.testing.trial import Trial
from tests.contract.example_specs import ExampleSpecs
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace, played_nodes
from tests.kubernetes.api import Api
from tests.plugins.eks.moto_eks import CLUSTER, NOW, EksServer, MotoEks
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.kubernetes

LABEL = "eks.amazonaws.com/nodegroup"


class LabCloud(EksCloud):
    """A cloud whose tokens kubelab takes."""

    def __init__(self, settings: EksSettings, eks: MotoEks, token: str) -> None:
        super().__init__(settings, make_session=lambda **_: eks.session)
        self._lab_token = token

    def token(self) -> str:
        return self._lab_token


class TestEks(ExampleSpecs):
    patience = prompt = HANG_S
    pause = 0.02

    @pytest.fixture(scope="class")
    @staticmethod
    def place(lab: Cluster) -> Iterator[str]:
        with new_namespace(lab, "eks") as name:
            yield name

    @pytest.fixture
    def eks(self, lab: Cluster) -> Iterator[MotoEks]:
        server = EksServer()
        eks = MotoEks(server)
        authority = Path(lab.pki["ca.crt"]).read_bytes()
        cluster = eks.backend.clusters[CLUSTER]
        cluster.endpoint = lab.url
        cluster.certificate_authority = {"data": base64.b64encode(authority).decode()}
        yield eks
        server.close()

    @pytest.fixture
    def make_provider(self, eks: MotoEks, lab: Cluster, place: str) -> MakeProvider:
        own = {"namespace": place, "user": 1000, "one_per_node": False}
        settings = eks.settings(**own)
        cloud = LabCloud(settings, eks, lab.tokens["admin"])
        return lambda owner: EksProvider("eks", settings, owner, EksDependencies(cloud))

    def test_it_runs_on_the_nodes_of_its_group_and_leaves_nothing(
        self, spec: BurstSpec, trial: Trial, eks: MotoEks, api: Api, place: str
    ) -> None:
        spec = msgspec.structs.replace(spec, lease_end=NOW)
        name = name_of(Tags(spec.owner, "eks"), spec.burst_id)
        node = played_nodes(api)[0]
        path = f"/api/v1/nodes/{node}"
        api.patch(path, {"metadata": {"labels": {LABEL: name}}})
        try:
            trial.provision(spec)
            trial.wait_running(spec)
            selector = f"burst.flux-framework.org/id={spec.burst_id}"
            listed = f"/api/v1/namespaces/{place}/pods?labelSelector={selector}"
            pods = api.items(listed)
            assert {pod["spec"]["nodeName"] for pod in pods} == {node}
            assert list(eks.groups) == [name]
            trial.reap_all(spec.burst_id)
            trial.wait_empty(spec)
            assert not eks.groups
            assert not api.items(listed)
        finally:
            api.patch(path, {"metadata": {"labels": {LABEL: None}}})
