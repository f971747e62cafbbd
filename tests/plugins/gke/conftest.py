# SPDX-License-Identifier: MIT
"""A GKE with a server before it, a client, and a provider in each of three forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_gke.apis import Addresses, GoogleApis
from google.cloud.container_v1 import ClusterManagerClient

from tests.plugins.gke.apis import Google, Services
from tests.plugins.gke.apis import serve as serve_apis
from tests.plugins.gke.build import World
from tests.plugins.gke.gke import PROJECT, Gke
from tests.plugins.gke.kubernetes import Kubernetes
from tests.plugins.gke.server import Service, connect, serve


@pytest.fixture
def gke() -> Gke:
    return Gke()


@pytest.fixture
def kubernetes(gke: Gke) -> Kubernetes:
    return Kubernetes(gke)


@pytest.fixture(scope="session")
def service() -> Service:
    return Service(Gke())


@pytest.fixture(scope="session")
def connected(service: Service) -> Iterator[ClusterManagerClient]:
    """One server and one client for all tests; what they speak of is each test's."""
    with serve(service) as address, connect(address) as client:
        yield client


@pytest.fixture
def client(
    gke: Gke, service: Service, connected: ClusterManagerClient
) -> Iterator[ClusterManagerClient]:
    service.gke = gke
    yield connected
    service.release()


@pytest.fixture
def google(gke: Gke) -> Google:
    return Google(gke=gke)


@pytest.fixture(scope="session")
def services() -> Services:
    return Services(Google())


@pytest.fixture(scope="session")
def their_addresses(services: Services) -> Iterator[Addresses]:
    with serve_apis(services) as found:
        yield found


@pytest.fixture
def apis(google: Google, services: Services, their_addresses: Addresses) -> GoogleApis:
    services.google = google
    return GoogleApis(PROJECT, lambda: "token-1", their_addresses)


@pytest.fixture
def world(
    kubernetes: Kubernetes,
    client: ClusterManagerClient,
    tmp_path: Path,
    google: Google,
    apis: GoogleApis,
) -> World:
    return World(kubernetes, client, tmp_path, google, apis)


@pytest.fixture(params=["cluster", "pool"])
def form(request: pytest.FixtureRequest, world: World) -> World:
    """A world in which a burst gets a cluster, or a pool, of its own."""
    if request.param == "pool":
        world.share()
    return world


@pytest.fixture
def pooled(world: World) -> World:
    """A burst gets a pool in a shared cluster; how its nodes change is not by that."""
    world.share()
    return world


@pytest.fixture
def named(world: World) -> World:
    """A burst's pods are in a node pool of a shared cluster."""
    world.share("burstable", pool="burstable")
    return world
