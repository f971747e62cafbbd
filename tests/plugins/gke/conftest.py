# SPDX-License-Identifier: MIT
"""A GKE with a server before it, a client, and a provider in each of three forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_gke.apis import GoogleApis
from google.cloud.container_v1 import ClusterManagerClient

from tests.plugins.gke.apis import Google
from tests.plugins.gke.apis import serve as serve_apis
from tests.plugins.gke.build import POOL, World
from tests.plugins.gke.gke import PROJECT, Gke
from tests.plugins.gke.kubernetes import Kubernetes
from tests.plugins.gke.server import connect, serve


@pytest.fixture
def gke() -> Gke:
    return Gke()


@pytest.fixture
def kubernetes(gke: Gke) -> Kubernetes:
    return Kubernetes(gke)


@pytest.fixture
def client(gke: Gke) -> Iterator[ClusterManagerClient]:
    with serve(gke) as address, connect(address) as client:
        yield client


@pytest.fixture
def google(gke: Gke) -> Google:
    return Google(gke=gke)


@pytest.fixture
def apis(google: Google) -> Iterator[GoogleApis]:
    with serve_apis(google) as addresses:
        yield GoogleApis(PROJECT, lambda: "token-1", addresses)


@pytest.fixture
def world(
    gke: Gke,
    kubernetes: Kubernetes,
    client: ClusterManagerClient,
    tmp_path: Path,
    apis: GoogleApis,
) -> World:
    return World(gke, kubernetes, client, tmp_path, apis)


@pytest.fixture(params=[{}, POOL], ids=["cluster", "pool"])
def form(request: pytest.FixtureRequest, world: World) -> World:
    """A world in which a burst gets a cluster, or a pool, of its own."""
    if request.param:
        world.gke.add_cluster("shared")
    world.make(**request.param)
    return world
