# SPDX-License-Identifier: MIT
"""What was just made or changed is read, although watches of the pods are late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

import pytest
from burst_gke.cloud import Cloud
from burst_gke.followers import GkePods
from burst_gke.provider import Dependencies, GkeProvider
from burst_gke.settings import GkeSettings

from burst.errors import ProviderError
from burst.kits.kube import Cluster
from burst.kits.pods import Tags
from burst.kits.pods.names import ID
from tests.kits.kubeserver import Said, api_server, cluster_of
from tests.kits.played_namespace import JOBS, PODS, let_provision
from tests.plugins.gke.build import World, settings
from tests.plugins.gke.server import Token


@pytest.fixture
def said() -> Iterator[Said]:
    """An API server whose watches tell nothing."""
    with api_server() as found:
        found.watches |= {PODS: [], JOBS: []}
        found.serve_nothing()
        yield found
        for watch in (*found.watches[PODS], *found.watches[JOBS]):
            watch.end(cut=True)


@pytest.fixture
def provider(said: Said, world: World) -> GkeProvider:
    """A provider whose pods are watched."""

    def pods(_: Cluster, given: GkeSettings, tags: Tags) -> GkePods:
        return GkePods(cluster_of(said), given, tags)

    world.share("burstable", pool="burstable", namespace="jobs")
    found = settings(**world.table)
    cloud = Cloud(found.parent, client=world.client, credentials=Token())
    provider = GkeProvider("gke", found, "owner-a", Dependencies(cloud, pods))
    for _ in range(2):
        assert not provider.observe()
    assert said.watches[PODS]
    return provider


def test_what_was_provisioned_is_listed(
    said: Said, provider: GkeProvider, world: World
) -> None:
    made = let_provision(said, world.name)
    provider.provision(world.spec)
    said.serve(JOBS, made)
    assert [status.burst_id for status in provider.observe()] == [world.name]


def test_what_was_resized_is_listed_anew(
    said: Said, provider: GkeProvider, world: World
) -> None:
    """Also after an error, as a part of it may be done."""
    said.answer("GET", f"{JOBS}/{world.name}", (503, {"kind": "Status"}))
    with suppress(ProviderError):
        provider.resize(world.spec)
    asked = len(said.asked)
    provider.observe()
    lists = [unquote(path) for _, path, _ in said.asked[asked:]]
    assert len([path for path in lists if f"{ID}={world.name}" in path]) == 2
