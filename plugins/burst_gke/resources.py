# SPDX-License-Identifier: MIT
"""Clusters and node pools as GKE reports them, and the burst of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from burst.errors import Refused
from burst.kits.resource_tags import distinct
from burst.model.burst import BurstId
from burst.provider import Failure, OwnedBurst, Phase
from burst_gke.failures import LACKS, LASTING, CloudFailure
from burst_gke.names import TAGS, Labels


class GkeResource(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster or a node pool, as GKE reports it."""

    name: str
    labels: Mapping[str, str] = {}
    phase: Phase
    """RUNNING: pods can be created there."""
    why: str = ""
    fault: CloudFailure | None = None
    """What GKE reports of it; None while it runs."""
    impaired: bool = False
    """Whether it exists and may be usable, although GKE calls it failed."""
    endpoint: str = ""
    """Address of a cluster's API server, without a scheme; empty if it has none yet."""
    private_endpoint: str = ""
    """The server's address in the cluster's own network; empty if there is none."""
    dns_endpoint: str = ""
    """The server's DNS name, for which Google checks the caller's account, not its
    address; empty if there is none."""
    ca: str = ""
    """Certificate of the server's authority, PEM."""
    pools: tuple[GkeResource, ...] = ()
    """The node pools of a cluster."""
    most: int = 0
    """How many nodes GKE's autoscaler may make in a pool."""
    groups: tuple[str, ...] = ()
    """The instance groups of a pool's VMs, one for each zone, as
    `PROJECT/zones/ZONE/instanceGroupManagers/NAME`."""
    has_nodes: bool = False
    """Whether a pool was made with all its nodes, and nothing is wrong with it; for a
    cluster: whether one of its pools was."""
    autopilot: bool = False
    """Whether GKE makes the cluster's nodes as pods need them, and takes no pools."""

    @property
    def failure(self) -> Failure:
        """The class of the failure, if it has failed."""
        meaning = self.fault.meaning if self.fault else None
        if meaning in LASTING:
            return Failure.REFUSED
        return Failure.CAPACITY if meaning in LACKS else Failure.OTHER

    def reach(self, by: str) -> tuple[str, str]:
        """Return the API server's URL and authority, by the setting `endpoint`.

        The DNS endpoint has a certificate that public authorities signed, so its
        authority is empty. Raises Refused if the cluster has no such endpoint.
        """
        found = {
            "default": self.endpoint,
            "private": self.private_endpoint,
            "dns": self.dns_endpoint,
        }[by]
        if not found:
            raise Refused(
                f"cluster {self.name} has no {by} endpoint",
                "change endpoint, or add one with `gcloud container clusters update`",
            )
        return f"https://{found}", "" if by == "dns" else self.ca


class GkeOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A long-running operation of GKE on one cluster or pool."""

    kind: str
    """Such as `create_cluster` or `delete_node_pool`."""
    done: bool
    """Whether it has ended, with or without an error."""
    fault: CloudFailure | None = None


class BurstResources(msgspec.Struct, frozen=True):
    """What one burst runs on: a cluster of its own, or a pool in a shared cluster."""

    cluster: GkeResource
    pool: GkeResource | None = None

    @property
    def own_cluster(self) -> bool:
        """Whether the cluster was made for the burst and is deleted with it."""
        return self.pool is None

    @property
    def decisive(self) -> GkeResource:
        """The resource whose phase is the burst's.

        GKE reports a cluster that got no nodes as running. So for a burst's own cluster
        it is a pool that does not run, if there is one.
        """
        if self.pool is not None or self.cluster.phase is not Phase.RUNNING:
            return self.pool or self.cluster
        unwell = (p for p in self.cluster.pools if p.phase is not Phase.RUNNING)
        return next(unwell, self.cluster)


def autopilot(cluster: str) -> tuple[str, str]:
    """Return what is wrong with an Autopilot cluster, and advice."""
    return (
        f"cluster {cluster} is an Autopilot cluster, which takes no node pools",
        'set cluster to a Standard one, or to "" for one for each burst, or use a'
        ' provider with type = "kube", whose pods make Autopilot add nodes',
    )


def find_bursts(
    clusters: Iterable[GkeResource], labels: Labels
) -> dict[BurstId, BurstResources]:
    """Return the clusters and pools with the labels of this provider, by burst."""
    return dict(_bursts(clusters, labels))


def _bursts(
    clusters: Iterable[GkeResource], labels: Labels
) -> Iterator[tuple[BurstId, BurstResources]]:
    for cluster in clusters:
        burst_id = labels.burst_of(cluster.labels)
        if burst_id:
            yield burst_id, BurstResources(cluster)
            continue
        for pool in cluster.pools:
            burst_id = labels.burst_of(pool.labels)
            if burst_id:
                yield burst_id, BurstResources(cluster, pool)


def list_owned(clusters: Iterable[GkeResource]) -> list[OwnedBurst]:
    """Return the bursts of all owners that have a cluster or a pool."""
    found = [each for cluster in clusters for each in (cluster, *cluster.pools)]
    return distinct(TAGS.owned(each.labels) for each in found)
