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

from burst.errors import NotFound, ProviderError, Transient
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import (
    Bursts,
    PodBursts,
    PodSettingsProvider,
    Tags,
    check_burst,
)
from burst.kits.pods.diagnose.examine import examine_lead
from burst.kits.pods.status.kubectl_command import pods_command
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, OwnedBurst, Phase
from burst_eks.cloud import Cloud, EksCluster
from burst_eks.groups import (
    PREFIX,
    NodeGroup,
    burst_of,
    check_ours,
    describe,
    name_of,
    owned,
    pod_settings,
    prefix_of,
    request,
)
from burst_eks.settings import EksSettings

MakePods = Callable[[Cluster, EksSettings, Tags], Bursts]
# After how many seconds to repeat a provision that waits for EKS, which takes minutes.
_LOOK_AGAIN_S = 5.0
# AWS declines a time that is past by its own clock. Such a burst is about to be reaped.
_SOON_S = 60.0
# Nodes are deleted after so many seconds even if pods are left, since nodes cost.
_LEAVE_S = 60.0


class Dependencies(msgspec.Struct, frozen=True):
    """What tests replace: AWS, the pods, the clock."""

    cloud: Cloud
    pods: MakePods = PodBursts
    clock: Callable[[], float] = time.time


class EksProvider(PodSettingsProvider):
    """Followers in EKS."""

    Settings = EksSettings

    def __init__(
        self,
        name: str,
        settings: EksSettings,
        owner: str,
        dependencies: Dependencies | None = None,
    ) -> None:
        super().__init__(settings)
        given = dependencies or Dependencies(Cloud(settings.region, settings.profile))
        self._settings = settings
        self._tags = Tags(owner, name)
        self._cloud, self._make, self._clock = given.cloud, given.pods, given.clock
        self._reached: tuple[EksCluster, Cluster, Bursts] | None = None
        self._leaving: dict[BurstId, float] = {}
        """Since when the pods of a burst are being deleted. A restart of the daemon
        forgets it, so the pods then get the time again."""

    def place(self) -> str:
        """Return the cluster, by region and profile, and the namespace."""
        known = self._settings
        profile = f" profile {known.profile}" if known.profile else ""
        return (
            f"{known.region}{profile} cluster {known.cluster} namespace"
            f" {known.namespace}"
        )

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return aws' command for a kubeconfig, and one that lists the pods."""
        known = self._settings
        words = ["aws", "eks", "update-kubeconfig", f"--name={known.cluster}"]
        words += [f"--region={known.region}"]
        words += [f"--profile={known.profile}"] if known.profile else []
        return [shlex.join(words), pods_command(known.namespace, self._tags, burst_id)]

    def provision(self, spec: BurstSpec) -> None:
        """Make the node group, then the pods on it.

        Raises Transient while EKS is making the node group.
        """
        check_burst(spec, self._settings, self._tags, self._clock)
        cluster = self._cloud.cluster(self._settings.cluster)
        name = name_of(self._tags, spec.burst_id)
        group = self._group(spec.burst_id)
        if group is None:
            # From here on there may be costs. The request has the burst's tags.
            asked = request(self._settings, spec, self._tags)
            self._cloud.create({"subnets": list(cluster.subnets), **asked})
            raise Transient(f"EKS has begun to make {name}", retry_after=_LOOK_AGAIN_S)
        check_ours(group, self._settings, spec)
        if spec.lease_end > self._clock() + _SOON_S:
            for scaling_group in group.scaling_groups:
                self._cloud.end_at(scaling_group, spec.lease_end)
        if group.phase in (Phase.PENDING, Phase.ENDING):
            raise Transient(group.why, retry_after=_LOOK_AGAIN_S)
        if group.phase is Phase.FAILED:
            if group.meaning:
                # Nodes that came up cost, and are deleted with the rest.
                raise group.meaning.raised(f"{group.why}; what was made is deleted")
            return  # `observe` reports that it failed, and why
        settings = pod_settings(self._settings, spec, self._tags)
        self._pods(cluster, settings).provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which there is a node group or an object."""
        cluster = self._cloud.cluster(self._settings.cluster)
        found = self._cloud.groups(self._settings.cluster, prefix_of(self._tags))
        groups = {burst_of(g, self._tags): g for g in found}
        pods = {status.burst_id: status for status in self._pods(cluster).observe()}
        bursts = sorted({*filter(None, groups), *pods})
        return [describe(b, groups.get(b), pods.get(b)) for b in bursts]

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the cluster."""
        cluster = self._cloud.cluster(self._settings.cluster)
        groups = self._cloud.groups(self._settings.cluster, PREFIX)
        listed = [*self._pods(cluster).list_all(), *filter(None, map(owned, groups))]
        return list({(b.owner, b.provider, b.burst_id): b for b in listed}.values())

    def reap(self, burst_id: BurstId) -> None:
        """Delete the pods, then their nodes; NotFound once EKS has neither."""
        self._reap(burst_id, force=False)

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but delete pods although their kubelet does not end them."""
        self._reap(burst_id, force=True)

    def _reap(self, burst_id: BurstId, *, force: bool) -> None:
        cluster = self._cloud.cluster(self._settings.cluster)
        group = self._group(burst_id)
        trouble: ProviderError | None = None
        try:
            pods = self._pods(cluster)
            pods.force_reap(burst_id) if force else pods.reap(burst_id)
            left = True
        except NotFound:
            left = False
        except ProviderError as error:
            # Whether there are pods cannot be read. Nodes cost, so they are deleted.
            left, trouble = False, error
        since = self._leaving.setdefault(burst_id, self._clock())
        if group and burst_of(group, self._tags):
            late = self._clock() - since > _LEAVE_S
            if group.phase is not Phase.ENDING and (late or not left):
                self._cloud.delete(self._settings.cluster, group.name)
            return
        if trouble:
            raise trouble
        if not left:
            self._leaving.pop(burst_id, None)
            raise NotFound(f"nothing of {burst_id} is left in EKS")

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the credentials, the cluster, and what may be done there."""
        found = []
        try:
            found.append(ok(f"AWS knows this daemon as {self._cloud.identity()}"))
            cluster = self._cloud.cluster(self._settings.cluster)
            groups = self._cloud.groups(self._settings.cluster, prefix_of(self._tags))
        except ProviderError as error:
            found.append(wrong(error.what, error.advice or "try again later"))
            return [*found, *(examine_lead(self._settings, lead) if lead else ())]
        found.append(
            ok(f"cluster {self._settings.cluster} runs; node groups are listed")
        )
        bursts = sorted(filter(None, (burst_of(g, self._tags) for g in groups)))
        if bursts:
            found.append(note(f"bursts there now: {', '.join(bursts)}"))
        return [*found, *self._pods(cluster).examine(lead)]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Run a pod on some node of the cluster that tries to connect to the lead."""
        cluster = self._cloud.cluster(self._settings.cluster)
        return self._pods(cluster).probe(lead, tell, user)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event of the burst's Job or MiniCluster.

        In the cluster as it was last reached: AWS is not asked for an event. Raises
        NotFound before that.
        """
        if self._reached is None:
            raise NotFound(f"cluster {self._settings.cluster} was not reached yet")
        self._reached[2].record_event(burst_id, event, text)

    def _group(self, burst_id: BurstId) -> NodeGroup | None:
        """Return the burst's node group, also if lists do not show it yet."""
        name = name_of(self._tags, burst_id)
        return self._cloud.group(self._settings.cluster, name)

    def _pods(self, cluster: EksCluster, settings: EksSettings | None = None) -> Bursts:
        """Return the pods in the cluster: the same each time, which know what changed.

        With other settings than the provider's new ones, by the same connection.
        """
        if self._reached is None or self._reached[0] != cluster:
            name = self._settings.cluster
            access = Endpoint(cluster.url, cluster.ca, lambda: self._cloud.token(name))
            reached = Cluster(access, timeout=self._settings.timeout)
            if self._reached is not None:
                self._reached[1].close()
            pods = self._make(reached, self._settings, self._tags)
            self._reached = cluster, reached, pods
        if settings is None:
            return self._reached[2]
        return self._make(self._reached[1], settings, self._tags)
