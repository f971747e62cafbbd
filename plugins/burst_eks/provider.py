# SPDX-License-Identifier: MIT
"""The EKS provider: a burst is a managed node group, and pods on its nodes.

It keeps no state that matters. Each call reads what exists and does the next step, so
any call can be repeated, also by another process.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence

import msgspec

from burst.errors import Transient
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import PodBursts, PodProvider, Tags, check_burst
from burst.kits.pods.made_places import MadePlaces, ReachedClusters, describe_all
from burst.kits.pods.names import pods_command
from burst.kits.resource_tags import distinct
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, note, ok
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, OwnedBurst, Phase
from burst_eks import groups
from burst_eks.cloud import EksCloud
from burst_eks.settings import EksSettings

MakePods = Callable[[Cluster, EksSettings, Tags], PodBursts]
# After how many seconds to repeat a provision that waits for EKS, which takes minutes.
_LOOK_AGAIN_S = 5.0
# AWS declines a time that is past by its own clock. A burst whose lease ends within
# this many seconds is about to be reaped.
_SOON_S = 60.0


class EksDependencies(msgspec.Struct, frozen=True):
    """What tests replace: AWS, the pods, the clock."""

    cloud: EksCloud
    pods: MakePods = PodBursts
    clock: Callable[[], float] = time.time


class EksProvider(PodProvider):
    """Followers in EKS. A burst keeps its size, which is that of its node group."""

    Settings = EksSettings

    def __init__(
        self,
        name: str,
        settings: EksSettings,
        owner: str,
        dependencies: EksDependencies | None = None,
    ) -> None:
        super().__init__(name, settings, owner)
        given = dependencies or EksDependencies(EksCloud(settings))
        self._settings = settings
        self._cloud, self._make, self._clock = given.cloud, given.pods, given.clock
        self._can_resize = False
        self._reached = ReachedClusters[PodBursts]()
        self._places = MadePlaces(given.clock)

    def place(self) -> str:
        """Return the cluster, by region and profile, and the namespace."""
        known = self._settings
        profile = f" profile {known.profile}" if known.profile else ""
        where = f"{known.region}{profile} cluster {known.cluster}"
        return f"{where} namespace {known.namespace}"

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return an aws command for a kubeconfig, and one that lists the pods."""
        known = self._settings
        words = ["aws", "eks", "update-kubeconfig", f"--name={known.cluster}"]
        words += [f"--region={known.region}"]
        words += [f"--profile={known.profile}"] if known.profile else []
        return [shlex.join(words), pods_command(known.namespace, self.tags, burst_id)]

    def bursts(self) -> PodBursts:
        """Return the pods in the cluster: always one object, as it knows what changed.

        The cluster is looked up each time: a new one of the same name has another
        address.
        """
        found = self._cloud.cluster()

        def reach() -> PodBursts:
            access = Endpoint(*found, self._cloud.token)
            made = Cluster(access)
            return self._make(made, self._settings, self.tags)

        return self._reached.bursts(self._settings.cluster, found, reach)

    def provision(self, spec: BurstSpec) -> None:
        """Make the node group, then the pods on it.

        Raises Transient while EKS is making the node group.
        """
        check_burst(spec, self._settings, self.tags, self._clock)
        kept = self.bursts()  # before anything is made that costs
        name = groups.name_of(self.tags, spec.burst_id)
        group = self._cloud.group(name)
        if group is None:
            # From here on there may be costs. The request has the burst's tags.
            self._cloud.create(groups.request(self._settings, spec, self.tags))
            raise Transient(f"EKS has begun to make {name}", retry_after=_LOOK_AGAIN_S)
        groups.check_ours(group, self._settings, spec, self.tags)
        if spec.lease_end > self._clock() + _SOON_S:
            for scaling_group in group.scaling_groups:
                self._cloud.end_at(scaling_group, spec.lease_end)
        if group.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(group.why, retry_after=_LOOK_AGAIN_S)
        if group.phase is Phase.FAILED and group.meaning:
            # Nodes that came up cost, and are deleted with the rest.
            raise group.meaning.raised(f"{group.why}; what was made is deleted")
        if group.phase is Phase.RUNNING:
            settings = groups.pod_settings(self._settings, spec, self.tags)
            self._make(kept.cluster, settings, self.tags).provision(spec)
            kept.expect(spec.burst_id)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have a node group or an object in the cluster."""
        return describe_all(self._ours(), super().observe())

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the cluster."""
        made = self._cloud.groups(groups.PREFIX)
        owned = (groups.TAGS.owned(group.tags) for group in made)
        return distinct([*super().list_all(), *owned])

    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Delete the pods, then their nodes; NotFound once EKS has neither."""
        # By its name, because lists may not show it yet.
        name = groups.name_of(self.tags, burst_id)
        group = self._cloud.group(name)
        self._places.reap(
            burst_id,
            group if group and groups.burst_of(group, self.tags) else None,
            lambda: self.bursts().reap(burst_id, force=force),
            lambda: self._cloud.delete(name),
        )

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the credentials, the cluster, and what may be done there."""
        who = ok(f"AWS knows this daemon as {self._cloud.identity()}")
        inside = super().examine(lead)
        bursts = ", ".join(sorted(self._ours())) or "none"
        there = note(f"bursts in cluster {self._settings.cluster} now: {bursts}")
        return [who, there, *inside]

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event for the burst's Job or MiniCluster.

        It uses the last connection to the cluster: AWS is not called for an event.
        Raises NotFound if there was none yet.
        """
        pods = self._reached.last_in(self._settings.cluster)
        pods.record_event(burst_id, event, text)

    def _ours(self) -> dict[BurstId, groups.NodeGroup]:
        """Return the node groups of this provider's bursts."""
        listed = self._cloud.groups(groups.prefix_of(self.tags))
        named = ((groups.burst_of(group, self.tags), group) for group in listed)
        return {burst: group for burst, group in named if burst}
