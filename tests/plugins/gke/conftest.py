# SPDX-License-Identifier: MIT
"""A GKE with a server before it, a client, and a provider in each of three forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud.container_v1 import ClusterManagerClient

from tests.plugins.gke.build import POOL, World
from tests.plugins.gke.gke import Gke
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
def world(
    gke: Gke, kubernetes: Kubernetes, client: ClusterManagerClient, tmp_path: Path
) -> World:
    return World(gke, kubernetes, client, tmp_path)


@pytest.fixture(params=[{}, POOL], ids=["cluster", "pool"])
def form(request: pytest.FixtureRequest, world: World) -> World:
    """A world in which a burst gets a cluster, or a pool, of its own."""
    if request.param:
        world.gke.add_cluster("shared")
    world.make(**request.param)
    return world
