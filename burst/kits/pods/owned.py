# SPDX-License-Identifier: MIT
"""The bursts of all owners, by the labels and annotations of their objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import Manifest, annotations_of, labels_of
from burst.kits.pods.names import ID, LEASE_END, OWNER, PROVIDER, parse_lease_end
from burst.kits.pods.reaper import find_ours
from burst.kits.pods.settings import PodSettings
from burst.model.burst import BurstId
from burst.provider import OwnedBurst


def list_owned(cluster: Cluster, settings: PodSettings) -> Sequence[OwnedBurst]:
    """Return the bursts of all owners in the namespace of the settings."""
    labels = {OWNER: "", PROVIDER: "", ID: ""}
    return group_by_owner(find_ours(cluster, settings, labels))


def group_by_owner(objects: Iterable[Manifest]) -> list[OwnedBurst]:
    """Return the bursts that these objects belong to."""
    ends: dict[tuple[str, str, str], float] = {}
    for item in objects:
        labels = labels_of(item)
        key = labels[OWNER], labels[PROVIDER], labels[ID]
        end = parse_lease_end(annotations_of(item).get(LEASE_END, ""))
        ends[key] = max(ends.get(key, 0.0), end)
    return [
        OwnedBurst(
            owner=owner, provider=provider, burst_id=BurstId(burst), lease_end=end
        )
        for (owner, provider, burst), end in sorted(ends.items())
    ]
