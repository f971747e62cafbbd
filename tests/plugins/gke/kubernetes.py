# SPDX-License-Identifier: MIT
"""The Kubernetes side without one: followers as entries, by API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from burst_gke import GkeSettings
from burst_gke.followers import LeavingHosts, Members, Placement
from google.cloud.container_v1 import types as t

from burst.errors import NotFound, ProviderError, SpecRefused, Transient
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import Tags
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, ok
from burst.model.lead import LeadIdentity
from burst.provider import (
    BurstSpec,
    BurstStatus,
    Failure,
    FollowerStatus,
    OwnedBurst,
    Phase,
)
from tests.plugins.gke.gke import Gke

Key = tuple[str, str, str, BurstId]


@dataclass
class Entry:
    """A burst's objects."""

    spec: BurstSpec
    settings: GkeSettings
    ends_in: int | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    """The VM of each host that has one."""
    leaving: dict[str, int] = field(default_factory=dict)
    """Hosts that end, and the looks until they are gone."""
    noted: LeavingHosts = field(default_factory=LeavingHosts)
    ended: set[str] = field(default_factory=set)
    """Hosts whose brokers have ended in order."""


@dataclass
class Kubernetes:
    """All API servers of a GKE's clusters."""

    gke: Gke
    bursts: dict[Key, Entry] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    """Those that were sent."""
    trouble: ProviderError | None = None
    """What every call raises."""
    looks_to_leave: int = 1
    """How often a burst must be reaped until it is gone."""
    full: bool = False
    """Whether pods have waited long enough for nodes."""
    told: list[str] = field(default_factory=list)
    """Events of Jobs."""
    crash: bool = False
    """Whether the next provision fails after it has made its objects."""

    def followers(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> Pods:
        """Return what the provider works with."""
        return Pods(self, cluster, settings, tags)

    def settings_of(self, burst_id: BurstId) -> GkeSettings:
        """Return with which settings a burst's objects were made."""
        return next(e.settings for key, e in self.bursts.items() if key[3] == burst_id)

    def count(self, burst_id: BurstId) -> int:
        """Return how many followers there are of a burst, in clusters that exist."""
        alive = set().union(*map(known, self.gke.clusters.values()))
        return sum(
            len(entry.spec.hosts) + len(entry.leaving)
            for key, entry in self.bursts.items()
            if key[3] == burst_id and key[0].removeprefix("https://") in alive
        )


def known(cluster: t.Cluster) -> set[str]:
    """Return the addresses at which a cluster's API server answers."""
    plane = cluster.control_plane_endpoints_config
    private = plane.ip_endpoints_config.private_endpoint
    return {cluster.endpoint, private, plane.dns_endpoint_config.endpoint}


class Pods:
    """The bursts of one provider in one cluster."""

    def __init__(
        self, world: Kubernetes, cluster: Cluster, settings: GkeSettings, tags: Tags
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._settings = settings
        self._tags = tags

    def provision(self, spec: BurstSpec) -> None:
        entry = self._world.bursts.setdefault(
            self._key(spec.burst_id), Entry(spec, self._settings)
        )
        if entry.spec.hosts != spec.hosts:
            raise SpecRefused(f"{spec.burst_id} exists with other hosts")
        if self._world.crash:
            self._world.crash = False
            raise RuntimeError("the process died here")

    def observe(self) -> Sequence[BurstStatus]:
        scope = self._key(BurstId(""))[:3]
        return [
            self._status(key, entry)
            for key, entry in self._world.bursts.items()
            if key[:3] == scope
        ]

    def resize(self, spec: BurstSpec) -> None:
        entry = self._world.bursts.get(self._key(spec.burst_id))
        if entry is None:
            raise NotFound(f"nothing of {spec.burst_id}")
        if entry.ends_in is not None:
            raise Transient(f"{spec.burst_id} is being deleted")
        if spec.program is not None:
            raise SpecRefused(f"{spec.burst_id} is isolated, and keeps its size")
        known = entry.spec.hosts
        both = min(len(known), len(spec.hosts))
        if known[:both] != spec.hosts[:both]:
            raise SpecRefused(f"{spec.burst_id} exists with other hosts")
        if len(spec.hosts) > self._settings.offers[spec.offer].max_nodes:
            raise SpecRefused("more than it sells")
        if entry.leaving.keys() & spec.hosts:
            raise Transient("of its shrink, has not ended yet")
        for host in known[both:]:
            entry.leaving[host] = self._world.looks_to_leave
        entry.spec = spec

    def members(self, burst_id: BurstId) -> Members | None:
        key = self._key(burst_id)
        entry = self._world.bursts.get(key)
        if entry is None:
            return None
        self._schedule(key, entry)
        hosts = (*entry.spec.hosts, *entry.leaving)
        pods = [Placement(host, entry.nodes.get(host, "")) for host in hosts]
        return Members(entry.spec.hosts, tuple(pods), entry.ends_in is not None)

    def leaving(self, burst_id: BurstId) -> LeavingHosts:
        entry = self._world.bursts.get(self._key(burst_id))
        return entry.noted if entry else LeavingHosts()

    def note(self, burst_id: BurstId, leaving: LeavingHosts) -> None:
        self._world.bursts[self._key(burst_id)].noted = leaving

    def _schedule(self, key: Key, entry: Entry) -> bool:
        """Let pods end, put others on VMs and have VMs made; tell whether all have one.

        In a pool of others each has one.
        """
        for host, looks in list(entry.leaving.items()):
            entry.leaving[host] = looks - 1
            if not looks:
                del entry.leaving[host]
                entry.nodes.pop(host, None)
        gke = self._world.gke
        address = key[0].removeprefix("https://")
        with gke.lock:
            cluster = next(c for c in gke.clusters.values() if address in known(c))
            pool = gke.pool_of(cluster, key[3])
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

    def _status(self, key: Key, entry: Entry) -> BurstStatus:
        placed = self._schedule(key, entry)
        ours = set(entry.spec.hosts) if placed else set(entry.nodes)
        full = not placed and self._world.full
        waits = Phase.FAILED if full else Phase.PENDING
        followers = [
            FollowerStatus(host, Phase.FAILED, "its broker has ended")
            if host in entry.ended
            else FollowerStatus(host, Phase.RUNNING if host in ours else waits)
            for host in entry.spec.hosts
        ]
        followers += [FollowerStatus(host, Phase.ENDING) for host in entry.leaving]
        phase = Phase.RUNNING if placed else waits
        if entry.ended:
            phase = Phase.FAILED
        return BurstStatus(
            burst_id=key[3],
            phase=phase if entry.ends_in is None else Phase.ENDING,
            followers=tuple(followers),
            why=next((f.why for f in followers if f.why), ""),
            failure=Failure.CAPACITY if full else Failure.OTHER,
        )

    def list_all(self) -> Sequence[OwnedBurst]:
        url = self._key(BurstId(""))[0]
        return [
            OwnedBurst(
                owner=owner,
                provider=provider,
                burst_id=burst_id,
                lease_end=entry.spec.lease_end,
            )
            for (place, owner, provider, burst_id), entry in self._world.bursts.items()
            if place == url
        ]

    def reap(self, burst_id: BurstId) -> None:
        key = self._key(burst_id)
        entry = self._world.bursts.get(key)
        if entry is None:
            raise NotFound(f"nothing of {burst_id}")
        if entry.ends_in is None:
            entry.ends_in = self._world.looks_to_leave
        elif entry.ends_in == 0:
            del self._world.bursts[key]
            raise NotFound(f"nothing of {burst_id}")
        entry.ends_in -= 1 if entry.ends_in else 0

    def force_reap(self, burst_id: BurstId) -> None:
        if entry := self._world.bursts.get(self._key(burst_id)):
            entry.ends_in = 0
        self.reap(burst_id)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        if self._key(burst_id) not in self._world.bursts:
            raise NotFound(f"there is no Job {burst_id} yet")
        self._world.told.append(f"{burst_id} {event.name} {text}")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        return [ok(f"may do all at {self._cluster.access}")]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        where = dict(self._settings.pod.get("spec", {}).get("nodeSelector", {}))
        found = [ok(f"{self._cluster.access} {where} reaches {lead.endpoint}")]
        return [*found, ok(f"{user} is known there")] if user else found

    def _key(self, burst_id: BurstId) -> Key:
        """Speak to the API server, and return under what it has a burst."""
        access = self._cluster.access
        assert isinstance(access, Endpoint)
        self._world.tokens.append(access.token())
        if self._world.trouble:
            raise self._world.trouble
        address = access.url.removeprefix("https://")
        if all(address not in known(c) for c in self._world.gke.clusters.values()):
            raise Transient(f"no API server at {address}")
        return access.url, self._tags.owner, self._tags.provider, burst_id
