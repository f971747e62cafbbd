# SPDX-License-Identifier: MIT
"""KubeProvider keeps the contract on a real API server, in both its forms.

Of form operator that is tried where it matters: how a burst is made, seen, resized and
deleted. What is read from settings and certificates, and what a call takes, is the same
in both.

Jobs and their pods, scheduling and garbage collection are Kubernetes' own; that pods
run is played by kwok, and the Flux Operator by the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from burst_kube.provider import KubeProvider, KubeSettings

from burst.kits.pods import OfferTable
from burst.provider import BurstSpec, Provider
from burst.testing import ProviderContract
from burst.testing.contract_resize import ResizeChecks
from burst.testing.contract_traces import TraceChecks
from burst.testing.fixtures import Count, MakeProvider
from tests.contract.example_specs import ExampleSpecs
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.kubernetes.api import Api
from tests.kubernetes.backend import KubeBackend, another_proxy
from tests.kubernetes.proxy import Fault, Proxy
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def place(lab: Cluster) -> Iterator[str]:
    """One namespace for all, as each test has an owner of its own."""
    with new_namespace(lab, "contract") as name:
        yield name


class KubeFixtures(ExampleSpecs):
    patience = prompt = HANG_S
    pause = 0.02
    ends_leases = True
    lease = 30.0
    form: Literal["job", "operator"] = "job"
    lacking = "secrets"
    """What a burst that was made in part has not."""

    @pytest.fixture
    def settings(self, lab: Cluster, place: str) -> KubeSettings:
        return KubeSettings(
            kubeconfig=str(lab.kubeconfig),
            namespace=place,
            form=self.form,
            image="local.test/flux:v0.88.0",
            user=1000,
            one_per_node=False,
            offers={"nodes": OfferTable(cores=1, max_nodes=4)},
        )

    @pytest.fixture(autouse=True)
    def way(self, api: Api, tmp_path: Path) -> Iterator[Proxy]:
        """Between the API server and all providers that are not to crash."""
        with another_proxy(api, tmp_path / "way") as way:
            yield way

    @pytest.fixture
    def backend(
        self, api: Api, settings: KubeSettings, way: Proxy, proxy: Proxy
    ) -> KubeBackend:
        return KubeBackend(api, settings, way, proxy)

    @pytest.fixture
    def make_provider(self, backend: KubeBackend) -> MakeProvider:
        return lambda owner: backend.named(owner, "here")

    @pytest.fixture(autouse=True)
    def proxy(self, api: Api, tmp_path: Path) -> Iterator[Proxy]:
        """For all tests, as it has to be there until bursts were reaped at the end."""
        with Proxy(api, tmp_path) as proxy:
            yield proxy

    @pytest.fixture
    def make_interrupted(self, settings: KubeSettings, proxy: Proxy) -> MakeProvider:
        proxy.faults.append(Fault("POST", f"/{self.lacking}\\?", drop=True))
        cut = msgspec.structs.replace(settings, kubeconfig=str(proxy.kubeconfig))
        return lambda owner: KubeProvider("here", cut, owner, timeout=HANG_S)

    @pytest.fixture
    def misconfigured(self, settings: KubeSettings) -> Callable[[], Provider]:
        wrong = msgspec.structs.replace(settings, kubeconfig="/no/such/file")
        return lambda: KubeProvider("here", wrong, "owner-a")

    @pytest.fixture
    def count(self, api: Api, place: str) -> Count | None:
        def pods(spec: BurstSpec) -> int:
            selector = f"burst.flux-framework.org/id={spec.burst_id}"
            path = f"/api/v1/namespaces/{place}/pods?labelSelector={selector}"
            return len(api.items(path))

        return pods


class TestKubeProviderByJob(KubeFixtures, ProviderContract):
    pass


@pytest.mark.usefixtures("operator")
class TestKubeProviderByOperator(KubeFixtures, TraceChecks, ResizeChecks):
    form = "operator"
    lacking = "miniclusters"

    crashed = ProviderContract.crashed
    test_after_a_crash_at_the_request_it_is_made_once = (
        ProviderContract.test_after_a_crash_at_the_request_it_is_made_once
    )
    test_half_built_it_can_be_reaped = ProviderContract.test_half_built_it_can_be_reaped
    test_reaped_while_it_is_made_it_does_not_come_back = (
        ProviderContract.test_reaped_while_it_is_made_it_does_not_come_back
    )
    test_the_end_of_one_follower_is_not_that_of_the_others = (
        ProviderContract.test_the_end_of_one_follower_is_not_that_of_the_others
    )
