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
def connected() -> Iterator[tuple[Service, ClusterManagerClient]]:
    """One server and one client for all tests; what they speak of is each test's."""
    service = Service(Gke())
    with serve(service) as address, connect(address) as client:
        yield service, client


@pytest.fixture
def client(
    gke: Gke, connected: tuple[Service, ClusterManagerClient]
) -> Iterator[ClusterManagerClient]:
    service, client = connected
    service.gke = gke
    yield client
    service.release()


@pytest.fixture
def google(gke: Gke) -> Google:
    return Google(gke=gke)


@pytest.fixture(scope="session")
def services() -> Iterator[tuple[Services, Addresses]]:
    known = Services(Google())
    with serve_apis(known) as addresses:
        yield known, addresses


@pytest.fixture
def apis(google: Google, services: tuple[Services, Addresses]) -> GoogleApis:
    known, addresses = services
    known.google = google
    return GoogleApis(PROJECT, lambda: "token-1", addresses)


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
