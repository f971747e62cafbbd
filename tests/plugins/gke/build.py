# SPDX-License-Identifier: MIT
"""Settings and providers for the tests of GKE."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from burst_gke import GkeProvider, GkeSettings
from burst_gke.cloud import Cloud
from burst_gke.provider import Means
from google.cloud.container_v1 import ClusterManagerClient

from burst.config import convert
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec
from tests.plugins.gke.gke import PROJECT
from tests.plugins.gke.kubernetes import Kubernetes
from tests.plugins.gke.server import Token

OFFER = "n2"
TABLE: dict[str, Any] = {
    "project": PROJECT,
    "location": "us-central1-a",
    "image": "registry.test/flux:0.88",
    "offers": {OFFER: {"machine_type": "n2-standard-8", "max_nodes": 4}},
}
POOL = {"cluster": "shared"}
NAMED_POOL = {"cluster": "shared", "pool": "burstable"}


def settings(**table: Any) -> GkeSettings:
    """Return settings: the usual ones, and these. Raises ConfigError."""
    return convert(GkeSettings, {**TABLE, **table}, "providers.gke")


def spec(directory: Path, number: int = 0, owner: str = "owner-a") -> BurstSpec:
    """Return the spec of a burst of two nodes."""
    return example_spec(example_lead(directory, owner), number, OFFER)


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def provider(
    client: ClusterManagerClient,
    kubernetes: Kubernetes,
    found: GkeSettings,
    owner: str = "owner-a",
    clock: Callable[[], float] | None = None,
) -> GkeProvider:
    """Return a provider that works in this world."""
    cloud = Cloud(found.parent, client=client, credentials=Token())
    means = Means(cloud, kubernetes.followers, clock or Clock())
    return GkeProvider("gke", found, owner, means)
