# SPDX-License-Identifier: MIT
"""The pods of bursts in one cluster, with the facts for the size of their node pools.

The hosts that a burst gives back are noted at its Job or MiniCluster before the first
pod ends. Once the pods are gone, nothing else names the hosts whose nodes still cost.
"""

from __future__ import annotations

import msgspec

from burst.kits.kube import Cluster
from burst.kits.kube.kinds import POD, Manifest, annotations_of, name_of
from burst.kits.pods import PodBursts, Tags
from burst.kits.pods.lifecycle.reaper import (
    find_ours,
    kinds_of,
    made_for,
    may_exist,
)
from burst.kits.pods.status.burst_objects import BurstObjects
from burst.kits.pods.status.kept_object import KeptObject, kept
from burst.kits.resource_tags import parse_seconds
from burst.model.burst import BurstId
from burst.model.ranks import format_hostlist, parse_hostlist
from burst_gke.settings import GkeSettings

GKE_LEAVING = "burst.flux-framework.org/gke-leaving"
"""An annotation: the hosts that a burst gives back, whose nodes may still exist."""
GKE_LEAVING_SINCE = "burst.flux-framework.org/gke-leaving-since"
"""An annotation: since when these hosts have no pod, in seconds since the epoch."""


class LeavingHosts(msgspec.Struct, frozen=True):
    """The hosts by which a burst shrinks; none if it does not shrink."""

    hosts: tuple[str, ...] = ()
    since: float = 0.0
    """Since when they have no pod, in seconds since the epoch; 0 while they have."""


class Placement(msgspec.Struct, frozen=True):
    """A pod of a burst, and where it runs."""

    host: str
    """The burst's host; empty if it is not known."""
    node: str
    """The node; empty if the pod has none yet, or has ended there."""


class Members(msgspec.Struct, frozen=True):
    """The hosts of a burst, and its pods."""

    hosts: tuple[str, ...]
    """The hosts, without those that leave."""
    pods: tuple[Placement, ...]
    """All pods that exist, also those that are ending."""
    ending: bool = False
    """Whether the burst is being deleted."""


class GkePods(PodBursts):
    """The pods in a cluster of GKE."""

    def __init__(self, cluster: Cluster, settings: GkeSettings, tags: Tags) -> None:
        super().__init__(cluster, settings, tags, own_cluster=not settings.cluster)
        self._gke, self._labels = settings, tags
        self._parent = kinds_of(settings)[0]

    def members(self, burst_id: BurstId) -> Members | None:
        """Return a burst's hosts and pods.

        None if it has no Job or MiniCluster, as `form` of the settings names one.
        """
        listed = find_ours(self.cluster, self._gke, self._labels.labels(burst_id))
        main = (self._parent.name, str(burst_id))
        mains = [each for each in listed if (each["kind"], name_of(each)) == main]
        if not mains or made_for(mains[0], burst_id):
            return None
        found = BurstObjects(burst_id, tuple(map(kept, listed)))
        pods = (Placement(found.host_of(p), _node_of(p)) for p in found.of(POD.name))
        return Members(found.hosts, tuple(pods), found.ending)

    def leaving(self, burst_id: BurstId) -> LeavingHosts:
        """Return the hosts that are noted as leaving a burst."""
        found = self._find(burst_id)
        known = annotations_of(found) if found else {}
        try:
            hosts = tuple(parse_hostlist(known.get(GKE_LEAVING, "")))
        except ValueError:  # somebody edited it: GKE's autoscaler deletes the nodes
            hosts = ()
        return LeavingHosts(hosts, parse_seconds(known.get(GKE_LEAVING_SINCE, "")))

    def note(self, burst_id: BurstId, leaving: LeavingHosts) -> None:
        """Note the hosts that a burst gives back, unless the burst is gone."""
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


def _node_of(pod: KeptObject) -> str:
    """Return the node of a pod; empty if the pod has ended, even while it is listed.

    If its node ended the pod, as a spot VM that is taken back does, the node may be
    gone, or may be given back: another pod has taken the pod's place.
    """
    return "" if pod.phase in ("Succeeded", "Failed") else pod.node
