# SPDX-License-Identifier: MIT
"""Lists the bursts of all owners, from the labels and annotations of their objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, Manifest, annotations_of, labels_of
from burst.kits.pods.lifecycle.reaper import find_ours
from burst.kits.pods.names import ID, LEASE, OWNER, PROVIDER
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.kept_object import seconds_of
from burst.kits.resource_tags import parse_seconds
from burst.model.burst import BurstId
from burst.model.finding import Finding, ok, wrong
from burst.provider import OwnedBurst


def list_owned(cluster: Cluster, settings: PodSettings) -> Sequence[OwnedBurst]:
    """Return the bursts of all owners in the namespace of the settings."""
    labels = {OWNER: "", PROVIDER: "", ID: ""}
    return group_by_owner(find_ours(cluster, settings, labels))


def judge_owners(cluster: Cluster, settings: PodSettings, owner: str) -> Finding:
    """Check that no other owner has bursts in the namespace.

    Bursts are found by their Jobs, which MiniClusters have too. Raises Transient,
    Refused.
    """
    labels = {OWNER: "", PROVIDER: "", ID: ""}
    found = cluster.find(JOB, settings.namespace, labels, metadata_only=True)
    others = sorted({labels_of(item)[OWNER] for item in found} - {owner})
    where = f"namespace {settings.namespace}"
    if not others:
        return ok(f"nobody else has bursts in {where}")
    return wrong(
        f"{where} has bursts of another owner, too: {', '.join(others)}",
        "give each lead a namespace of its own (manifests/far): network policies,"
        " quotas and rights do not tell owners apart. If that lead is gone, `burst gc"
        " --provider NAME --any-owner` lists what it left",
    )


def group_by_owner(objects: Iterable[Manifest]) -> list[OwnedBurst]:
    """Return the bursts that these objects belong to."""
    ends: dict[tuple[str, str, str], float] = {}
    for item in objects:
        labels = labels_of(item)
        key = labels[OWNER], labels[PROVIDER], labels[ID]
        ends[key] = max(ends.get(key, 0.0), _lease_end(item))
    return [
        OwnedBurst(
            owner=owner, provider=provider, burst_id=BurstId(burst), lease_end=end
        )
        for (owner, provider, burst), end in sorted(ends.items())
    ]


def _lease_end(item: Manifest) -> float:
    """Return the end of an object's lease, in seconds since the epoch; 0 for none."""
    lasts = parse_seconds(annotations_of(item).get(LEASE, ""))
    return seconds_of(item["metadata"]["creationTimestamp"]) + lasts if lasts else 0.0
