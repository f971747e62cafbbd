# SPDX-License-Identifier: MIT
"""Resizes the node pool of a burst: adds nodes as the burst grows, and gives them back.

`setSize` of the pool is not used. To make a pool smaller, it removes nodes "at random"
(`gcloud container clusters resize`), with the followers that run there. So it can
neither shrink a burst nor take back a growth that found no machines. Instead:

* To grow, the autoscaler may make as many nodes as the burst is to have, and makes them
  for pods that find no node. So there is a node only where a pod needs one.
* To shrink, the pods end first. Then the autoscaler may make only as many nodes as are
  left, and the VMs without a follower are deleted by name, through their instance group
  (`instanceGroupManagers.deleteInstances`), as the autoscaler itself would ten minutes
  later. Bounds below the present number of nodes delete nothing.

A follower that left is listed until its node is gone, because the node costs until
then. If this account may not delete the VM, the autoscaler does. If the account cannot
even list VMs, the follower is listed for as long as the autoscaler may need.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence

import msgspec

from burst.errors import NotFound, Refused, SpecRefused, Transient
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, FollowerStatus, Phase
from burst_gke.apis import GoogleApis, ManagedVm
from burst_gke.cloud import Cloud
from burst_gke.followers import GkePods, LeavingHosts, Members, Placement
from burst_gke.requests import autoscaling
from burst_gke.resources import BurstResources, GkeResource
from burst_gke.settings import GkeSettings

# GKE's autoscaler deletes a node that was not needed for ten minutes, and deletes none
# in the ten minutes after it has made one.
UNSEEN_S = 1200.0
_LOOK_AGAIN_S = 5.0
_LATER = "GKE's autoscaler deletes it after some ten minutes"


class _Spare(msgspec.Struct, frozen=True):
    """The VMs of a pool beyond those that its burst is to have."""

    count: int
    why: str = "its node is being deleted"
    """Why they still exist."""


class PoolResizer:
    """Resizes one provider's bursts that have nodes of their own. For one thread."""

    def __init__(
        self,
        cloud: Cloud,
        apis: GoogleApis | None,
        settings: GkeSettings,
        check: Callable[[BurstSpec], None],
        clock: Callable[[], float],
    ) -> None:
        """`check` raises what `burst.kits.pods.check_burst` does."""
        self._cloud = cloud
        self._apis = apis
        self._settings = settings
        self._check = check
        self._clock = clock
        self._left: dict[BurstId, tuple[FollowerStatus, ...]] = {}
        """Followers that left and whose nodes may still exist, by burst. A burst that
        is missing, as after a restart, is read again."""

    def resize(self, spec: BurstSpec, resources: BurstResources, pods: GkePods) -> None:
        """Do the next step. Raises what `Provider.resize` may raise."""
        members = pods.members(spec.burst_id)
        if members is None or spec.program is not None:
            pods.resize(spec)  # it raises the reason
            return
        if members.ending:
            raise Transient(f"{spec.burst_id} is being deleted", "wait for its end")
        both = min(len(spec.hosts), len(members.hosts))
        if not both or spec.hosts[:both] != members.hosts[:both]:
            raise SpecRefused(f"{spec.burst_id} exists with other hosts")
        pool = self._pool_of(resources, spec.burst_id)
        before = pods.leaving(spec.burst_id)
        leaving = _leaving(spec, members, before)
        if leaving != before:
            pods.note(spec.burst_id, leaving)
        self._left[spec.burst_id] = _ending(leaving.hosts, "its pod is not gone yet")
        if leaving.hosts:
            self._shrink(spec, resources.cluster, pool, leaving, pods)
            return
        if len(spec.hosts) > both:
            self._check(spec)
        if self._bound(resources.cluster, pool, len(spec.hosts)):
            # Before the pods: a growth that GKE declines leaves nothing to take back.
            # GKE's next list shows whether it was done, because an operation may fail.
            what = f"GKE has begun to let {pool.name} have {len(spec.hosts)} nodes"
            raise Transient(what, retry_after=_LOOK_AGAIN_S)
        pods.resize(spec)

    def complete(self, status: BurstStatus, pods: GkePods) -> BurstStatus:
        """Return a burst's status with the followers whose nodes may still exist."""
        if status.phase is Phase.ENDING or status.instance is not None:
            return status
        burst_id = status.burst_id
        if burst_id not in self._left:
            hosts = pods.leaving(burst_id).hosts
            self._left[burst_id] = _ending(hosts, "its node may still exist")
        shown = {follower.host for follower in status.followers}
        left = [each for each in self._left[burst_id] if each.host not in shown]
        if not left:
            return status
        return msgspec.structs.replace(
            status,
            followers=(*status.followers, *left),
            why=status.why or f"{left[0].host}: {left[0].why}",
        )

    def forget_others(self, bursts: Collection[BurstId]) -> None:
        """Forget the followers that left all bursts but these."""
        for gone in self._left.keys() - set(bursts):
            del self._left[gone]

    def _shrink(
        self,
        spec: BurstSpec,
        cluster: GkeResource,
        pool: GkeResource,
        leaving: LeavingHosts,
        pods: GkePods,
    ) -> None:
        burst_id = spec.burst_id
        pods.resize(spec)
        members = pods.members(burst_id)
        placed = members.pods if members else ()
        if any(each.host not in spec.hosts for each in placed):
            return
        now = self._clock()
        if not 0 < leaving.since <= now:  # none yet, or the clock was set back
            leaving = msgspec.structs.replace(leaving, since=now)
            pods.note(burst_id, leaving)
        # Before a VM is deleted, so that GKE's own pods on it get no new node. The VMs
        # cost, so they are deleted even if this is declined or not done yet.
        with contextlib.suppress(Refused):
            self._bound(cluster, pool, len(spec.hosts))
        spare = self._give_back(spec, pool, placed, leaving)
        self._left[burst_id] = _ending(leaving.hosts[: spare.count], spare.why)
        if not spare.count:
            pods.note(burst_id, LeavingHosts())

    def _pool_of(self, resources: BurstResources, burst_id: BurstId) -> GkeResource:
        if resources.pool is not None:
            return resources.pool
        name = self._settings.name_of(burst_id)
        for pool in resources.cluster.pools:
            if pool.name == name:
                return pool
        raise Refused(
            f"cluster {name} has no node pool {name} any more", "reap the burst"
        )

    def _bound(self, cluster: GkeResource, pool: GkeResource, nodes: int) -> bool:
        """Let GKE's autoscaler make up to `nodes`; tell whether that was requested.

        Raises Transient while GKE works on the pool or the cluster.
        """
        if pool.most == nodes:
            return False
        self._cloud.set_autoscaling(cluster.name, pool.name, autoscaling(nodes))
        return True

    def _give_back(
        self,
        spec: BurstSpec,
        pool: GkeResource,
        placed: Sequence[Placement],
        leaving: LeavingHosts,
    ) -> _Spare:
        """Request deletion of the VMs without a follower; return the surplus VMs."""
        nodes = len(spec.hosts)
        if self._apis is None:
            return self._unseen(leaving, "")
        try:
            found = {group: _vms(self._apis, group) for group in pool.groups}
        except Refused as error:
            return self._unseen(leaving, f" ({error.what})")
        spare = _Spare(max(0, sum(map(len, found.values())) - nodes))
        used = {each.node for each in placed if each.node}
        if strange := used - {vm.name for vms in found.values() for vm in vms}:
            # Nothing is deleted on a guess.
            why = f": node {min(strange)} of a follower is not a VM of {pool.name}"
            return self._unseen(leaving, why)
        if not {each.host for each in placed if each.node}.issuperset(spec.hosts):
            # A follower that is started again may be put on any of these nodes.
            return msgspec.structs.replace(spare, why="a follower has no node now")
        more = sum(not vm.ending for vms in found.values() for vm in vms) - nodes
        for group, vms in found.items():
            unused = [vm for vm in vms if not vm.ending and vm.name not in used]
            chosen = unused[: max(0, more)]
            more -= len(chosen)
            if not chosen:
                continue
            try:
                self._apis.delete_vms(group, chosen)
            except Refused as error:
                why = f"may not delete its node: {error.what}; {_LATER}"
                return msgspec.structs.replace(spare, why=why)
        return spare

    def _unseen(self, leaving: LeavingHosts, why: str) -> _Spare:
        """Count VMs that cannot be seen for as long as the autoscaler may need."""
        over = self._clock() - leaving.since > UNSEEN_S
        count = 0 if over else len(leaving.hosts)
        return _Spare(count, f"its node cannot be seen{why}; {_LATER}")


def _leaving(spec: BurstSpec, members: Members, before: LeavingHosts) -> LeavingHosts:
    """Return the hosts that leave now or left before, whose nodes may still exist."""
    known = (*members.hosts[len(spec.hosts) :], *before.hosts)
    hosts = tuple(h for h in dict.fromkeys(known) if h not in spec.hosts)
    return LeavingHosts(hosts, before.since) if hosts else LeavingHosts()


def _vms(apis: GoogleApis, group: str) -> list[ManagedVm]:
    try:
        return apis.vms(group)
    except NotFound:
        return []


def _ending(hosts: Sequence[str], why: str) -> tuple[FollowerStatus, ...]:
    return tuple(FollowerStatus(host, Phase.ENDING, why) for host in hosts)
