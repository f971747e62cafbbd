# SPDX-License-Identifier: MIT
"""Settings and providers for the tests of GKE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burst_gke.apis import GoogleApis
from burst_gke.cloud import Cloud
from burst_gke.provider import Dependencies, GkeProvider
from burst_gke.settings import GkeSettings
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.types import NodePool

from burst.config import convert
from burst.errors import NotFound, Transient
from burst.provider import BurstSpec, BurstStatus
from burst.testing import example_lead, example_spec
from tests.plugins.gke.apis import Google
from tests.plugins.gke.gke import PROJECT
from tests.plugins.gke.kubernetes import Kubernetes
from tests.plugins.gke.server import Token
from tests.support.set_clock import SetClock

OFFER = "n2"
TABLE: dict[str, Any] = {
    "project": PROJECT,
    "location": "us-central1-a",
    "image": "registry.test/flux:0.88",
    "offers": {OFFER: {"machine_type": "n2-standard-8", "max_nodes": 4}},
}
POOL = {"cluster": "shared"}
NAMED_POOL = {"cluster": "shared", "pool": "burstable"}
NOW = 1_800_000_000.0


def settings(**table: Any) -> GkeSettings:
    """Return settings: the usual ones, and these. Raises ConfigError."""
    return convert(GkeSettings, {**TABLE, **table}, "providers.gke")


def spec(directory: Path, number: int = 0, owner: str = "owner-a") -> BurstSpec:
    """Return the spec of a burst of two nodes."""
    return example_spec(example_lead(directory, owner), number, OFFER)


class Asking:
    """Short ways to ask a provider for one burst, again and again as a daemon."""

    def __init__(self, provider: GkeProvider, burst: BurstSpec) -> None:
        self.provider = provider
        self.spec = burst
        self.name = str(burst.burst_id)

    def provision(self, times: int = 20) -> str:
        """Provision until it is through; return what was said last before."""
        said = ""
        for _ in range(times):
            try:
                self.provider.provision(self.spec)
            except Transient as error:
                said = str(error)
            else:
                return said
        raise AssertionError(f"not through after {times} calls: {said}")

    def status(self) -> BurstStatus:
        """Return what is listed of the burst, which is."""
        listed = self.provider.observe()
        (found,) = (s for s in listed if s.burst_id == self.spec.burst_id)
        return found

    def is_gone(self) -> bool:
        """Reap once; tell whether nothing is left."""
        try:
            self.provider.reap(self.spec.burst_id)
        except NotFound:
            return True
        except Transient:
            pass  # who asks asks again
        return False

    def reap(self, times: int = 20) -> list[str]:
        """Reap until NotFound; return what was said on the way."""
        said: list[str] = []
        for _ in range(times):
            try:
                self.provider.reap(self.spec.burst_id)
            except NotFound:
                return said
            except Transient as error:
                said.append(str(error))
        raise AssertionError(f"not gone after {times} calls: {said}")


class World(Asking):
    """A provider in a GKE, and what that consists of."""

    table: Mapping[str, Any]
    """With what the provider was made."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        client: ClusterManagerClient,
        at: Path,
        google: Google,
        apis: GoogleApis,
    ) -> None:
        self.gke = kubernetes.gke
        self.google = google
        self.kubernetes = kubernetes
        self.client = client
        self.clock = SetClock(NOW)
        self.apis: GoogleApis | None = apis
        super().__init__(self.make(), spec(at))

    def share(self, *pools: str, **table: Any) -> None:
        """Have bursts in a cluster that is there, with these node pools."""
        running = NodePool.Status.RUNNING
        known = [NodePool(name=name, status=running) for name in pools]
        self.gke.add_cluster("shared", node_pools=known)
        self.make(**POOL, **table)

    def make(self, **table: Any) -> GkeProvider:
        """Make a provider, which is then the one that is asked."""
        self.table = table
        self.provider = self.again()
        return self.provider

    def again(self, owner: str = "owner-a", name: str = "gke") -> GkeProvider:
        """Return a provider with the same settings, as of another process."""
        found = settings(**self.table)
        cloud = Cloud(found.parent, client=self.client, credentials=Token())
        dependencies = Dependencies(
            cloud, self.kubernetes.followers, self.clock, self.apis
        )
        return GkeProvider(name, found, owner, dependencies)


def orders(world: World) -> int:
    """Return how many clusters and pools were ordered."""
    return len(world.gke.orders)
