# SPDX-License-Identifier: MIT
"""Clusters and node pools as GKE reports them, and the names and labels by which the
burst of each is found.

GKE's rules: a cluster or pool has up to 40 characters of a-z, 0-9 and -, the first a
letter, the last not a dash; a label's value has up to 63 of a-z, 0-9, _ and -.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

from burst.errors import Refused, SpecRefused
from burst.kits.pods.names import is_name
from burst.kits.resource_tags import ResourceTags, distinct
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Failure, OwnedBurst, Phase
from burst_gke.failures import LACKS, LASTING, CloudFailure

PREFIX = "burst-"
OWNER, PROVIDER, ID, SPEC, LEASE = (
    f"{PREFIX}{key}" for key in ("owner", "provider", "id", "spec", "lease-end")
)
TAGS = ResourceTags(OWNER, PROVIDER, ID, LEASE)
_LONGEST_NAME = 40
# Our values are labels in Kubernetes too, where both ends are letters or digits.
_BOTH = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\Z")


def name_of(burst_id: BurstId, prefix: str = "") -> str:
    """Return the name of a burst's cluster or pool: its id if GKE accepts that.

    Otherwise its beginning and a hash, so that different ids have different names.
    """
    text = f"{prefix}-{burst_id}" if prefix else burst_id
    if len(text) <= _LONGEST_NAME and is_name(text):
        return text
    tail = f"-{_hash(text)}"
    head = _squeeze(text, "-")[: _LONGEST_NAME - len(tail) - 2].strip("-")
    return (head if is_name(head) else f"b-{head}".rstrip("-")) + tail


def label_value(text: str) -> str:
    """Return the text as the value of a label, shortened with a hash if need be."""
    if _BOTH.match(text):
        return text
    tail = f"-{_hash(text)}"
    return (_squeeze(text, "_")[: 63 - len(tail)] + tail).lstrip("_-")


class Labels(msgspec.Struct, frozen=True):
    """The labels of the bursts of one provider of one lead."""

    owner: str
    provider: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all these bursts have."""
        return {
            OWNER: label_value(self.owner),
            PROVIDER: label_value(self.provider),
        }

    def labels_of(self, spec: BurstSpec, spec_hash: str) -> dict[str, str]:
        """Return the labels of one burst. Raises Refused if its id cannot be one."""
        if not _BOTH.match(spec.burst_id):
            raise SpecRefused(
                f"{spec.burst_id!r} cannot be a label in Google Cloud",
                "name the rank slot with up to 56 lower-case letters, digits and"
                " dashes",
            )
        lease = {LEASE: str(int(spec.lease_end))} if spec.lease_end else {}
        return {**self.labels, ID: spec.burst_id, SPEC: spec_hash, **lease}

    def burst_of(self, labels: Mapping[str, str]) -> BurstId | None:
        """Return the burst with these labels; None if it is not this provider's."""
        ours = self.labels
        return TAGS.burst_of(labels, ours[OWNER], ours[PROVIDER])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _squeeze(text: str, instead: str) -> str:
    return re.sub(r"[^a-z0-9]+", instead, text.lower())


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
    found: dict[BurstId, BurstResources] = {}
    for cluster in clusters:
        if burst_id := labels.burst_of(cluster.labels):
            found[burst_id] = BurstResources(cluster)
            continue
        for pool in cluster.pools:
            if burst_id := labels.burst_of(pool.labels):
                found[burst_id] = BurstResources(cluster, pool)
    return found


def list_owned(clusters: Iterable[GkeResource]) -> list[OwnedBurst]:
    """Return the bursts of all owners that have a cluster or a pool."""
    found = [each for cluster in clusters for each in (cluster, *cluster.pools)]
    return distinct(TAGS.owned(each.labels) for each in found)
