# SPDX-License-Identifier: MIT
"""`type = "gke"` as someone might have installed it: GKE on loopback, pods at home.

BURST_TEST_GKE is the address of a server (`server.serve`), BURST_TEST_GKE_HOME where
followers have their directories.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import msgspec
from burst_gke.cloud import Cloud
from burst_gke.followers import LeavingHosts, Members, Placement
from burst_gke.provider import Dependencies, GkeProvider
from burst_gke.settings import GkeSettings
from burst_local.provider import LocalProvider, LocalSettings
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.services.cluster_manager.transports import (
    ClusterManagerGrpcTransport,
)

from burst.kits.kube import Cluster
from burst.kits.pods import Tags
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, ok
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, OwnedBurst
from tests.plugins.gke.server import Token


class FollowersAtHome(LocalProvider):
    """Processes on this host in the place of pods in a cluster."""

    def __init__(self, cluster: Cluster, _: GkeSettings, tags: Tags) -> None:
        self.cluster = cluster
        home = os.environ["BURST_TEST_GKE_HOME"]
        local = LocalSettings(dir=home, cores=64, gpus=8)
        super().__init__(f"{tags.provider}-pods", local, tags.owner)

    def provision(self, spec: BurstSpec) -> None:
        super().provision(msgspec.structs.replace(spec, offer="local"))

    def resize(self, spec: BurstSpec) -> None:
        super().resize(msgspec.structs.replace(spec, offer="local"))

    def members(self, burst_id: BurstId) -> Members | None:
        found = (s for s in self.observe() if s.burst_id == burst_id)
        status = next(found, None)
        if status is None:
            return None
        hosts = tuple(follower.host for follower in status.followers)
        return Members(hosts, tuple(Placement(host, "") for host in hosts))

    def leaving(self, _: BurstId) -> LeavingHosts:
        return LeavingHosts()

    def expect(self, burst_id: BurstId, *, anew: bool = False) -> None:
        """Nothing is late here."""

    def note(self, _: BurstId, leaving: LeavingHosts) -> None:
        """Not kept: no node of GKE is given back here."""

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Not kept: there is no Job that it could be of."""

    def list_all(self) -> Sequence[OwnedBurst]:
        return [
            msgspec.structs.replace(b, provider=b.provider.removesuffix("-pods"))
            for b in super().list_all()
        ]

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        super().reap(burst_id)

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        found = [ok(f"at home {lead.endpoint} is reached")]
        return [*found, ok(f"at home {user} is known")] if user else found


class InstalledGke(GkeProvider):
    """What the entry point names."""

    def __init__(self, name: str, settings: GkeSettings, owner: str) -> None:
        channel = grpc.insecure_channel(os.environ["BURST_TEST_GKE"])
        transport = ClusterManagerGrpcTransport(channel=channel)
        client = ClusterManagerClient(transport=transport)
        cloud = Cloud(settings.parent, client=client, credentials=Token())
        pods: Any = FollowersAtHome
        super().__init__(name, settings, owner, Dependencies(cloud, pods))
