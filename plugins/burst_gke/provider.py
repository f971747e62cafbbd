# SPDX-License-Identifier: MIT
"""The GKE provider: a burst is a cluster or a node pool, and pods in it.

It remembers nothing that counts. Each call looks at what Google Cloud has under our
labels and does the one next thing, so that it can be repeated, by another process too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.kits.kube import Cluster, Endpoint
from burst.kits.minicluster import MiniClusters, Tags
from burst.kits.minicluster.render import render
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Failure, Offer, Phase
from burst_gke.cloud import Cloud, Exists
from burst_gke.ground import Deed, Ground
from burst_gke.names import SPEC, Mark, hash_spec, name_of
from burst_gke.orders import cluster_order, pod_settings, pool_order
from burst_gke.settings import GkeSettings, offers_of

# How long until a provision that waits for GKE is to be repeated: its work takes
# minutes, and a project may ask a few times a second.
_LOOK_AGAIN_S = 5.0
# So long pods may take to leave before their nodes are deleted under them: nodes cost.
_LEAVE_S = 60.0


class Followers(Protocol):
    """What is needed of Kubernetes: the bursts of one provider in one cluster."""

    def provision(self, spec: BurstSpec) -> None:
        """Make the burst's objects, or those that are missing."""
        ...

    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst of which there is any object."""
        ...

    def reap(self, burst_id: BurstId) -> None:
        """Delete the objects; NotFound once there is none."""
        ...


class Means(msgspec.Struct, frozen=True):
    """What a provider works with."""

    cloud: Cloud
    followers: Callable[[Cluster, GkeSettings, Tags], Followers] = MiniClusters
    clock: Callable[[], float] = time.time


class GkeProvider:
    """Followers in GKE."""

    Settings = GkeSettings

    def __init__(
        self,
        name: str,
        settings: GkeSettings,
        owner: str,
        means: Means | None = None,
    ) -> None:
        means = means or Means(Cloud(settings.parent))
        self._settings = settings
        self._mark = Mark(owner, name)
        self._tags = Tags(owner, name)
        self._cloud = means.cloud
        self._make_followers = means.followers
        self._reached: dict[str, Cluster] = {}
        """Connections, by the address of the API server and its authority."""
        self._clock = means.clock
        self._leaving: dict[BurstId, float] = {}
        """Since when the pods of a burst are asked to leave. Forgotten with us; then
        they get the time once more."""

    def offers(self) -> Sequence[Offer]:
        """Return the machines of the settings."""
        return offers_of(self._settings)

    def provision(self, spec: BurstSpec) -> None:
        """Make the cluster or pool, and once there is one the pods in it.

        Transient for as long as GKE is at work on it.
        """
        labels = self._admit(spec)
        shared = self._shared()
        if self._settings.pool:
            ground = self._named_pool(shared)
        else:
            ground = self._usable(spec, labels, shared)
        if ground.phase is Phase.FAILED:
            if ground.failure is Failure.CAPACITY:
                raise InsufficientCapacity(ground.why, "its remains are deleted")
            return  # `observe` says that it failed, and why
        settings = pod_settings(self._settings, spec)
        self._followers(shared or ground, settings).provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which there is a cluster, a pool or an object."""
        shared = self._shared()
        if shared is None:
            found = self._ours(self._cloud.clusters())
            return [self._look_into(i, ground) for i, ground in found.items()]
        pools = self._ours(shared.pools)
        listed = self._followers(shared).observe()
        statuses = {status.burst_id: status for status in listed}
        return [
            _describe(i, pools.get(i), statuses.get(i))
            for i in sorted({*pools, *statuses})
        ]

    def reap(self, burst_id: BurstId) -> None:
        """Delete the pods, then what they ran on; NotFound once GKE has neither."""
        shared = self._shared()
        if self._settings.pool:
            assert shared is not None, "a pool is in a cluster"
            self._followers(shared).reap(burst_id)
            return
        grounds = shared.pools if shared else self._cloud.clusters()
        ground = self._ours(grounds).get(burst_id)
        trouble: ProviderError | None = None
        try:
            if not self._left(burst_id, shared or ground):
                return
        except ProviderError as error:
            # Nobody can say whether there are pods. What costs is deleted all the same.
            trouble = error
        if ground is not None:
            if ground.phase is not Phase.ENDING:
                self._delete(ground.name)
            return
        if shared and trouble:
            raise trouble
        unfinished = [deed for deed in self._deeds(burst_id) if not deed.done]
        if unfinished:
            # What is being made can appear after we have looked for it.
            raise Transient(f"GKE still has {unfinished[0].kind} of {burst_id} to do")
        self._leaving.pop(burst_id, None)
        raise NotFound(f"GKE has nothing of {burst_id} any more")

    def _admit(self, spec: BurstSpec) -> Mapping[str, str]:
        """Return the labels of a burst that we sell. Raises Refused."""
        # All that the pods will need is checked before anything is paid for.
        render(spec, self._settings, self._tags, self._clock())
        machine = self._settings.machine(spec.offer)
        kind = (machine.machine_type, machine.accelerator, machine.gpus, machine.spot)
        spec_hash = hash_spec(spec, *kind, self._settings.node_zone)
        return self._mark.labels_of(spec, spec_hash)

    def _shared(self) -> Ground | None:
        """Return the cluster that the settings name, None where they name none."""
        name = self._settings.cluster
        if not name:
            return None
        found = self._cloud.cluster(name)
        if found is None or found.phase in (Phase.ENDING, Phase.PENDING):
            how = found.why if found else "there is none"
            if found and found.phase is Phase.PENDING:
                raise Transient(f"cluster {name} is not ready: {how}")
            raise Refused(
                f"cluster {name} in {self._cloud.parent} cannot be used: {how}",
                'name another, or set cluster = "" for one a burst',
            )
        return found

    def _named_pool(self, shared: Ground | None) -> Ground:
        assert shared is not None, "a pool is in a cluster"
        for pool in shared.pools:
            if pool.name == self._settings.pool:
                return pool
        raise Refused(
            f"cluster {shared.name} has no node pool {self._settings.pool}",
            "it has " + ", ".join(pool.name for pool in shared.pools),
        )

    def _usable(
        self, spec: BurstSpec, labels: Mapping[str, str], shared: Ground | None
    ) -> Ground:
        """Return the burst's own cluster or pool, once GKE has made or given it up."""
        name = name_of(spec.burst_id)
        pools = {pool.name: pool for pool in shared.pools} if shared else {}
        ground = pools.get(name) if shared else self._cloud.cluster(name)
        if ground is None:
            self._order(spec, labels)
            raise Transient(f"GKE begins to make {name}", retry_after=_LOOK_AGAIN_S)
        if self._mark.burst_of(ground.labels) != spec.burst_id:
            raise Refused(
                f"there is a {self._kind} {name} in {self._cloud.parent} that is not"
                " ours: it lacks our labels",
                "rename it, or the rank slot",
            )
        if ground.labels.get(SPEC) != labels[SPEC]:
            raise Refused(
                f"{name} is there with other hosts or of another machine", "reap it"
            )
        if ground.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(ground.why, retry_after=_LOOK_AGAIN_S)
        return ground

    def _order(self, spec: BurstSpec, labels: Mapping[str, str]) -> None:
        """Order it from GKE, unless that was done before.

        Ordered twice it would be paid twice, or hide that the first one failed.
        """
        name = name_of(spec.burst_id)
        deeds = self._deeds(spec.burst_id)
        if deeds and not deeds[0].done:
            raise Transient(
                f"GKE is at {deeds[0].kind} of {name}", retry_after=_LOOK_AGAIN_S
            )
        if deeds and deeds[0].kind.startswith("delete"):
            raise InsufficientCapacity(f"{name} was deleted while it was made")
        if deeds and deeds[0].fault:
            raise deeds[0].fault.last_word(f"to make {name}")
        if deeds:
            raise Transient(
                f"GKE says that it made {name}, and does not show it",
                retry_after=_LOOK_AGAIN_S,
            )
        order = pool_order if self._settings.cluster else cluster_order
        try:
            # From here on it may cost; its labels come with the order.
            self._cloud.create(order(self._settings, spec, labels, self._clock()))
        except Exists as error:
            raise Transient(error.what, retry_after=_LOOK_AGAIN_S) from error

    def _left(self, burst_id: BurstId, cluster: Ground | None) -> bool:
        """Ask the pods to leave; tell whether to go on without waiting for them."""
        if cluster is None or cluster.phase is not Phase.RUNNING:
            return True
        since = self._leaving.setdefault(burst_id, self._clock())
        try:
            self._followers(cluster).reap(burst_id)
        except NotFound:
            return True
        return self._clock() - since > _LEAVE_S

    def _delete(self, name: str) -> None:
        """Have GKE delete a cluster or pool that bears our labels, with all in it."""
        try:
            if self._settings.cluster:
                self._cloud.delete_pool(self._settings.cluster, name)
            else:
                self._cloud.delete_cluster(name)
        except NotFound:
            return  # the next look will say so too

    def _ours(self, grounds: Sequence[Ground]) -> dict[BurstId, Ground]:
        found = {self._mark.burst_of(ground.labels): ground for ground in grounds}
        return {burst: ground for burst, ground in found.items() if burst}

    def _look_into(self, burst_id: BurstId, cluster: Ground) -> BurstStatus:
        """Describe a burst with a cluster of its own."""
        if cluster.phase is not Phase.RUNNING:
            return _describe(burst_id, cluster, None)
        try:
            listed = self._followers(cluster).observe()
        except ProviderError as error:
            # It is there, whatever its API server says or does not say.
            return BurstStatus(
                burst_id=burst_id, phase=Phase.PENDING, why=f"{cluster.name}: {error}"
            )
        status = next((s for s in listed if s.burst_id == burst_id), None)
        return _describe(burst_id, cluster, status)

    def _deeds(self, burst_id: BurstId) -> list[Deed]:
        name = name_of(burst_id)
        shared = self._settings.cluster
        target = f"clusters/{shared}/nodePools/{name}" if shared else f"clusters/{name}"
        return self._cloud.deeds(target)

    @property
    def _kind(self) -> str:
        return "node pool" if self._settings.cluster else "cluster"

    def _followers(
        self, cluster: Ground, settings: GkeSettings | None = None
    ) -> Followers:
        key = f"{cluster.endpoint} {cluster.ca}"
        if key not in self._reached:
            url = f"https://{cluster.endpoint}"
            access = Endpoint(url, cluster.ca, self._cloud.token)
            self._reached[key] = Cluster(access, timeout=self._settings.timeout)
        settings = settings or self._settings
        return self._make_followers(self._reached[key], settings, self._tags)


def _describe(
    burst_id: BurstId, ground: Ground | None, status: BurstStatus | None
) -> BurstStatus:
    """Say what a burst's ground and its pods say together."""
    if ground is None or (ground.phase is Phase.RUNNING and status is not None):
        assert status is not None, "one of them was found"
        return status
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.PENDING if ground.phase is Phase.RUNNING else ground.phase,
        followers=status.followers if status else (),
        why=ground.why or "its pods are not made yet",
        failure=ground.failure,
    )
