# SPDX-License-Identifier: MIT
"""Which burst stands where, and what place and pods say of it together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from burst.model.burst import BurstId
from burst.provider import BurstStatus, Phase
from burst_gke.names import Labels
from burst_gke.resources import GkeResource


class BurstResources(msgspec.Struct, frozen=True):
    """The place of one burst: a cluster of its own, or a pool in somebody's."""

    cluster: GkeResource
    pool: GkeResource | None = None

    @property
    def own_cluster(self) -> bool:
        """Whether the cluster goes with the burst."""
        return self.pool is None

    @property
    def resource(self) -> GkeResource:
        """What decides how it is: of a cluster of its own, the pool that is not well,
        as a cluster counts as running that got no nodes.
        """
        if self.pool is not None or self.cluster.phase is not Phase.RUNNING:
            return self.pool or self.cluster
        unwell = (p for p in self.cluster.pools if p.phase is not Phase.RUNNING)
        return next(unwell, self.cluster)


def target_of(cluster: str, pool: str) -> str:
    """Return how GKE's operations name a cluster, or a pool of it."""
    return f"clusters/{cluster}/nodePools/{pool}" if pool else f"clusters/{cluster}"


def find_bursts(
    clusters: Iterable[GkeResource], mark: Labels
) -> dict[BurstId, BurstResources]:
    """Return the places that bear the labels of these bursts, whoever's cluster."""
    return dict(_sites(clusters, mark))


def _sites(
    clusters: Iterable[GkeResource], mark: Labels
) -> Iterator[tuple[BurstId, BurstResources]]:
    for cluster in clusters:
        burst_id = mark.burst_of(cluster.labels)
        if burst_id:
            yield burst_id, BurstResources(cluster)
            continue
        for pool in cluster.pools:
            burst_id = mark.burst_of(pool.labels)
            if burst_id:
                yield burst_id, BurstResources(cluster, pool)


def describe(
    burst_id: BurstId, site: BurstResources | None, status: BurstStatus | None
) -> BurstStatus:
    """Say what a burst's place and its pods say. One of them is there."""
    if site is None or (status and site.resource.phase is Phase.RUNNING):
        assert status is not None, "one of them is there"
        return status
    ground = site.resource
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.PENDING if ground.phase is Phase.RUNNING else ground.phase,
        followers=status.followers if status else (),
        why=ground.why or "its pods are not made yet",
        failure=ground.failure,
        instance=status.instance if status else None,
    )
