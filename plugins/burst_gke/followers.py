# SPDX-License-Identifier: MIT
"""The pods of bursts in one cluster, with what the size of their node pool needs.

What a burst gives back is noted at its Job or MiniCluster, before the first pod ends:
once they are gone, nothing else names the hosts whose nodes still cost.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from burst.kits.kube import Cluster
from burst.kits.kube.kinds import POD, Manifest, annotations_of, name_of
from burst.kits.pods import Bursts, PodBursts, Tags
from burst.kits.pods.lifecycle.reaper import find_ours, kinds_of, may_exist
from burst.kits.pods.lifecycle.stuck_pods import node_of
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.resource_tags import parse_seconds
from burst.model.burst import BurstId
from burst.model.ranks import format_hostlist, parse_hostlist
from burst_gke.settings import GkeSettings

GKE_LEAVING = "burst.flux-framework.org/gke-leaving"
"""An annotation: the hosts that a burst gives back, whose nodes may exist still."""
GKE_LEAVING_SINCE = "burst.flux-framework.org/gke-leaving-since"
"""An annotation: since when no pod of these hosts exists, in seconds."""


class LeavingHosts(msgspec.Struct, frozen=True):
    """The hosts by which a burst shrinks; none if it does not."""

    hosts: tuple[str, ...] = ()
    since: float = 0.0
    """Since when no pod of theirs exists, in seconds since the epoch; 0 before."""


class Placement(msgspec.Struct, frozen=True):
    """A pod of a burst, and where it runs."""

    host: str
    """Of the burst; empty where that is not known."""
    node: str
    """Empty where it has none yet, or has ended there."""


class Members(msgspec.Struct, frozen=True):
    """The hosts of a burst, and its pods."""

    hosts: tuple[str, ...]
    """Without those that leave."""
    pods: tuple[Placement, ...]
    """All that exist, also those that end."""
    ending: bool = False
    """Whether it is being deleted."""


class GkeBursts(Bursts, Protocol):
    """The bursts of one provider in a cluster, such as `GkePods`."""

    def members(self, burst_id: BurstId) -> Members | None:
        """Return who is in a burst; None where nothing makes pods for it."""
        ...

    def leaving(self, burst_id: BurstId) -> LeavingHosts:
        """Return what is noted of a burst."""
        ...

    def note(self, burst_id: BurstId, leaving: LeavingHosts) -> None:
        """Note what a burst gives back. What is gone is not made again."""
        ...


class GkePods(PodBursts):
    """The pods in a cluster of GKE."""

    def __init__(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> None:
        super().__init__(cluster, settings, tags, own_cluster=not settings.cluster)
        self._gke, self._labels = settings, tags
        self._parent = kinds_of(settings)[0]

    def members(self, burst_id: BurstId) -> Members | None:
        """Return who is in a burst; None where nothing makes pods for it."""
        listed = find_ours(self.cluster, self._gke, self._labels.labels(burst_id))
        main = (self._parent.name, str(burst_id))
        if main not in [(item["kind"], name_of(item)) for item in listed]:
            return None
        found = BurstObjects(burst_id, tuple(listed))
        pods = (Placement(found.host_of(p), _node_of(p)) for p in found.of(POD.name))
        return Members(found.hosts, tuple(pods), found.ending)

    def leaving(self, burst_id: BurstId) -> LeavingHosts:
        """Return what is noted of a burst."""
        found = self._find(burst_id)
        known = annotations_of(found) if found else {}
        try:
            hosts = tuple(parse_hostlist(known.get(GKE_LEAVING, "")))
        except ValueError:  # somebody edited it: GKE's autoscaler deletes their nodes
            hosts = ()
        return LeavingHosts(hosts, parse_seconds(known.get(GKE_LEAVING_SINCE, "")))

    def note(self, burst_id: BurstId, leaving: LeavingHosts) -> None:
        """Note what a burst gives back. What is gone is not made again."""
        found = self._find(burst_id)
        if found is None:
            return
        hosts = format_hostlist(leaving.hosts) or None
        since = f"{leaving.since:.0f}" if leaving.since else None
        noted = {"annotations": {GKE_LEAVING: hosts, GKE_LEAVING_SINCE: since}}
        self.cluster.merge(found, {"metadata": noted})

    def _find(self, burst_id: BurstId) -> Manifest | None:
        """Return the metadata of the Job or MiniCluster with the first hosts."""
        if not may_exist(self.cluster, self._gke, self._parent):
            return None
        found = self.cluster.get(
            self._parent, self._gke.namespace, burst_id, metadata_only=True
        )
        return found if found is not None and self._labels.own(found) else None


def _node_of(pod: Manifest) -> str:
    """Return where a pod is; empty if it has ended, though it may be kept for long.

    Of one that its node ended, as a spot VM does that is taken back, the node may be
    gone, or be given back: another pod has its place.
    """
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return "" if ended else node_of(pod)
