# SPDX-License-Identifier: MIT
"""The Kubernetes side without one: followers in memory, by API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from burst_gke.followers import LeavingHosts, Members, Placement
from burst_gke.settings import GkeSettings
from google.cloud.container_v1 import types as t

from burst.errors import NotFound, ProviderError, SpecRefused, Transient
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import Tags
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, ok
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstSpec, Failure, FollowerStatus, Phase
from burst.testing import FakeCloud, FakeSettings
from burst.testing.cloud import FakeBurst, ProviderCall
from tests.plugins.gke.gke import Gke
from tests.plugins.kind import harness


@dataclass(kw_only=True)
class Entry(FakeBurst):
    """A burst's objects."""

    settings: GkeSettings
    nodes: dict[str, str] = field(default_factory=dict)
    """The VM of each host that has one."""
    noted: LeavingHosts = field(default_factory=LeavingHosts)


@dataclass
class Kubernetes:
    """All API servers of a GKE's clusters."""

    gke: Gke
    clouds: dict[str, FakeCloud] = field(default_factory=dict)
    """What is in each cluster, by the address of its API server."""
    tokens: list[str] = field(default_factory=list)
    """Those that were sent."""
    trouble: ProviderError | None = None
    """What every call raises."""
    looks_to_leave: int = 1
    """How often a burst must be reaped until it is gone, beyond once."""
    full: bool = False
    """Whether pods have waited long enough for nodes."""
    told: list[str] = field(default_factory=list)
    """Events of Jobs."""
    crash: bool = False
    """Whether the next provision fails after it has made its objects."""

    def followers(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> Any:
        """Return the `Pods` that the provider works with."""
        return Pods(self, cluster, settings, tags)

    @property
    def bursts(self) -> dict[BurstId, Entry]:
        """Return what there is of each burst."""
        found = (cloud.bursts.items() for cloud in self.clouds.values())
        return {
            key[2]: entry
            for entries in found
            for key, entry in entries
            if isinstance(entry, Entry)
        }

    def count(self, burst_id: BurstId) -> int:
        """Return how many followers there are of a burst, in clusters that exist."""
        alive = set().union(*map(known, self.gke.clusters.values()))
        found = (c for address, c in self.clouds.items() if address in alive)
        return sum(cloud.count(burst_id) for cloud in found)


def known(cluster: t.Cluster) -> set[str]:
    """Return the addresses at which a cluster's API server answers."""
    plane = cluster.control_plane_endpoints_config
    private = plane.ip_endpoints_config.private_endpoint
    return {cluster.endpoint, private, plane.dns_endpoint_config.endpoint}


class Pods(harness.Pods):
    """The bursts of one provider in one cluster, which run once they are on VMs."""

    def __init__(
        self, world: Kubernetes, cluster: Cluster, settings: GkeSettings, tags: Tags
    ) -> None:
        assert isinstance(cluster.access, Endpoint)
        self._world, self._access, self._given = world, cluster.access, settings
        self.cluster = cluster
        self._address = cluster.access.url.removeprefix("https://")
        kind = FakeSettings(
            shape=Shape(1000, 1000),
            max_nodes=max(offer.max_nodes for offer in settings.offers.values()),
            modes=("joined", "isolated"),
        )
        cloud = world.clouds.setdefault(self._address, FakeCloud())
        super().__init__(tags.provider, kind, tags.owner, cloud)
        self.ends_after = world.looks_to_leave

    def provision(self, spec: BurstSpec) -> None:
        spec = msgspec.structs.replace(spec, offer="nodes")
        key = self._key(spec.burst_id)
        self.cloud.bursts.setdefault(key, Entry(spec, settings=self._given))
        super().provision(spec)
        if self._world.crash:
            self._world.crash = False
            raise RuntimeError("the process died here")

    def resize(self, spec: BurstSpec) -> None:
        if spec.program is not None:
            raise SpecRefused(f"{spec.burst_id} is isolated, and keeps its size")
        super().resize(spec)

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        super().reap(burst_id, force=force)
        if force:
            super().reap(burst_id)

    def members(self, burst_id: BurstId) -> Members | None:
        self._enter(ProviderCall("members"))
        entry = self._entry(burst_id)
        if entry is None:
            return None
        entry.let_go(1)
        self._is_placed(entry)
        hosts = (*entry.spec.hosts, *entry.leaving)
        pods = [Placement(host, entry.nodes.get(host, "")) for host in hosts]
        return Members(entry.spec.hosts, tuple(pods), entry.ends_in is not None)

    def leaving(self, burst_id: BurstId) -> LeavingHosts:
        self._enter(ProviderCall("leaving"))
        entry = self._entry(burst_id)
        return entry.noted if entry else LeavingHosts()

    def note(self, burst_id: BurstId, leaving: LeavingHosts) -> None:
        self._enter(ProviderCall("note"))
        self._world.bursts[burst_id].noted = leaving

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        if self._entry(burst_id) is None:
            raise NotFound(f"there is no Job {burst_id} yet")
        self._world.told.append(f"{burst_id} {event.name} {text}")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        return [ok(f"may do all at {self._access}")]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        where = dict(self._given.pod.get("spec", {}).get("nodeSelector", {}))
        found = [ok(f"{self._access} {where} reaches {lead.endpoint}")]
        return [*found, ok(f"{user} is known there")] if user else found

    def _enter(self, call: ProviderCall) -> None:
        """Speak to the API server."""
        self._world.tokens.append(self._access.token())
        if self._world.trouble:
            raise self._world.trouble
        clusters = self._world.gke.clusters.values()
        if all(self._address not in known(cluster) for cluster in clusters):
            raise Transient(f"no API server at {self._address}")

    def _entry(self, burst_id: BurstId) -> Entry | None:
        entry = self._mine().get(burst_id)
        assert entry is None or isinstance(entry, Entry)
        return entry

    def _followers(self, burst: FakeBurst) -> tuple[FollowerStatus, ...]:
        assert isinstance(burst, Entry)
        placed = self._is_placed(burst)
        full = self._world.full and not placed
        burst.failure = Failure.CAPACITY if full else Failure.OTHER
        waits = Phase.FAILED if full else Phase.PENDING
        return tuple(
            FollowerStatus(host, Phase.FAILED, burst.failed[host])
            if host in burst.failed
            else FollowerStatus(host, Phase.RUNNING)
            if placed or host in burst.nodes
            else FollowerStatus(host, waits)
            for host in burst.spec.hosts
        )

    def _is_placed(self, entry: Entry) -> bool:
        """Put pods on VMs and have VMs made; tell whether all are on one.

        In a pool of others each is.
        """
        there = {*entry.spec.hosts, *entry.leaving}
        entry.nodes = {host: vm for host, vm in entry.nodes.items() if host in there}
        gke = self._world.gke
        with gke.lock:
            clusters = gke.clusters.values()
            cluster = next(c for c in clusters if self._address in known(c))
            pool = gke.pool_of(cluster, entry.spec.burst_id)
            if pool is None:
                return True
            if not gke.stalled:
                self._put(entry, pool)
        return entry.nodes.keys() >= set(entry.spec.hosts)

    def _put(self, entry: Entry, pool: t.NodePool) -> None:
        groups = [u.partition("/projects/")[2] for u in pool.instance_group_urls]
        gke = self._world.gke
        vms = {n: looks for group in groups for n, looks in gke.vms[group].items()}
        for host, node in list(entry.nodes.items()):
            if vms.get(node, 0) is not None:
                del entry.nodes[host]  # its VM is gone, or about to be
        free = [n for n in vms if vms[n] is None and n not in entry.nodes.values()]
        without = [host for host in entry.spec.hosts if host not in entry.nodes]
        entry.nodes.update(zip(without, free, strict=False))
        gke.scale_up(pool, len(without) - len(free))
