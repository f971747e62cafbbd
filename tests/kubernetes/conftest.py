# SPDX-License-Identifier: MIT
"""A real API server for the session, and a namespace for each test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.kits.kube.kinds import MINICLUSTER
from tests.kubelab import build
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import (
    CRD,
    WANTED,
    find_cluster,
    new_namespace,
    with_played_nodes,
)
from tests.kubernetes.api import Api
from tests.kubernetes.bursts import Bursts
from tests.kubernetes.operator import PlayedOperator
from tests.kubernetes.proxy import Proxy


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test, so that no test's time limit holds.

    Its progress goes to the terminal: the first build takes minutes. What cannot be
    had is said by the fixture, test by test.
    """
    wanted = any(item.get_closest_marker("kubernetes") for item in session.items)
    if WANTED not in os.environ:
        return
    if not wanted or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    shown = capture.global_and_fixture_disabled() if capture else _as_is()
    with shown, contextlib.suppress(build.Unavailable):
        build.ensure(kwok=True)


def _as_is() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """kubelab's control plane without nodes."""
    try:
        found = find_cluster()
    except build.Unavailable as missing:
        if os.environ.get("CI"):
            pytest.fail(f"no Kubernetes, and CI is set: {missing}")
        pytest.skip(f"want of Kubernetes: {missing}")
    with found:
        yield found


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, named for the test; its removal is begun and not awaited."""
    with new_namespace(cluster, request.node.name) as name:
        yield name


@pytest.fixture(scope="session")
def has_miniclusters(cluster: Cluster) -> bool:
    """Whether the cluster knows the operator's kind. It fails where it cannot tell."""
    return MINICLUSTER.api in cluster.kubectl("api-versions").split()


@pytest.fixture
def miniclusters(*, has_miniclusters: bool) -> None:
    """Skip where the cluster does not know the operator's kind."""
    if not has_miniclusters:
        pytest.skip(f"want of the MiniCluster kind ({CRD}=its manifest)")


@pytest.fixture(scope="session")
def lab(cluster: Cluster) -> Cluster:
    """kubelab's control plane with nodes that are not there: pods run at once."""
    try:
        return with_played_nodes(cluster)
    except build.Unavailable as missing:
        if os.environ.get("CI"):
            pytest.fail(f"no kwok, and CI is set: {missing}")
        pytest.skip(f"want of kwok: {missing}")


@pytest.fixture(scope="session")
def api(lab: Cluster) -> Iterator[Api]:
    """The API server, past all code of ours."""
    with contextlib.closing(Api(lab)) as api:
        yield api


@pytest.fixture
def bursts(lab: Cluster, api: Api, namespace: str, tmp_path: Path) -> Bursts:
    """A namespace to burst into; what is left there goes with it."""
    return Bursts(lab, api, namespace, tmp_path)


@pytest.fixture
def proxy(api: Api, tmp_path: Path) -> Iterator[Proxy]:
    """Between a provider and the API server, to misbehave on purpose."""
    with Proxy(api, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def account(bursts: Bursts) -> KubeProvider:
    """A provider that is the namespace's default service account, with no rights."""
    words = ("create", "token", "default", "-n", bursts.namespace)
    token = bursts.lab.kubectl(*words).strip()
    config = bursts.lab.write_kubeconfig(bursts.namespace, {"token": token})
    bursts.settings = msgspec.structs.replace(bursts.settings, kubeconfig=str(config))
    return bursts.provider()


@pytest.fixture(scope="module")
def operator(api: Api, place: str, *, has_miniclusters: bool) -> Iterator[None]:
    """Someone who makes Jobs of MiniClusters in the module's own namespace."""
    if not has_miniclusters:
        pytest.skip(f"want of the MiniCluster kind ({CRD}=its manifest)")
    with PlayedOperator(api, place):
        yield
