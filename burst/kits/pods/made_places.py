# SPDX-License-Identifier: MIT
"""Pods in a place that a provider makes: a cluster, a node pool, a node group.

A place costs money, so it is deleted whatever becomes of the pods in it: see
`MadePlaces.reap`. The provider lists its places, makes them and deletes them; what a
burst is by its place and its pods is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from burst.errors import NotFound, ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.pods.pod_provider import Bursts
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, Phase

LEAVE_S = 60.0
"""A place is deleted after so many seconds even if pods are left in it."""
_Bursts = TypeVar("_Bursts", bound=Bursts)


class MadePlace(Protocol):
    """What the pods of one burst run on, as the cloud reports it."""

    @property
    def phase(self) -> Phase:
        """RUNNING: pods can be created there."""

    @property
    def why(self) -> str:
        """What is wrong with it, or what it waits for; empty for nothing."""

    @property
    def failure(self) -> Failure:
        """Which class of failure it is, if it has failed."""


class MadePlaces:
    """The places of one provider's bursts, and how they go. For one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._leaving: dict[BurstId, float] = {}
        """Since when the pods of a burst are being deleted. A restart of the daemon
        forgets it, so the pods then get the time again."""

    def reap(
        self,
        burst_id: BurstId,
        place: MadePlace | None,
        reap_pods: Callable[[], None],
        delete: Callable[[], None],
    ) -> None:
        """Delete the pods, and then their place, by `delete`.

        `place` is as it is now, None for none, and `reap_pods` raises NotFound once
        there are no pods. Raises what that raised where there is no place.
        """
        trouble: ProviderError | None = None
        try:
            reap_pods()
        except ProviderError as error:
            # There are none, or that cannot be read. Nodes cost, so they are deleted.
            trouble = error
        since = self._leaving.setdefault(burst_id, self._clock())
        if place is not None:
            late = self._clock() - since > LEAVE_S
            if place.phase is not Phase.ENDING and (late or trouble):
                delete()
        elif trouble is not None:
            self._leaving.pop(burst_id, None)
            raise trouble


def describe_all(
    places: Mapping[BurstId, MadePlace], pods: Iterable[BurstStatus]
) -> list[BurstStatus]:
    """Return the status of each burst that has a place, or pods, or both."""
    listed = {status.burst_id: status for status in pods}
    bursts = sorted({*places, *listed})
    return [describe(each, places.get(each), listed.get(each)) for each in bursts]


def describe(
    burst_id: BurstId, place: MadePlace | None, pods: BurstStatus | None
) -> BurstStatus:
    """Return the status of a burst; one of `place` and `pods` is not None.

    That of its pods, once its place can have pods.
    """
    if place is None or (pods and place.phase is Phase.RUNNING):
        assert pods is not None, "a burst has a place or pods"
        if place and place.why and pods.phase is Phase.PENDING:
            return msgspec.structs.replace(pods, why=f"{pods.why}; {place.why}")
        return pods
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.PENDING if place.phase is Phase.RUNNING else place.phase,
        followers=pods.followers if pods else (),
        why=place.why or "its pods are not made yet",
        failure=place.failure,
        instance=pods.instance if pods else None,
    )


class ReachedClusters(Generic[_Bursts]):
    """The bursts in clusters: the same each time, as these know what has changed.

    Clusters are told apart by their names. One that is reached otherwise, as a new one
    of its name has another address, is connected to anew.
    """

    def __init__(self) -> None:
        self._reached: dict[str, tuple[Hashable, Cluster | None, _Bursts]] = {}

    def bursts(
        self,
        name: str,
        address: Hashable,
        reach: Callable[[], tuple[Cluster | None, _Bursts]],
    ) -> _Bursts:
        """Return the bursts in a cluster at an address.

        `reach` connects to it, and returns the connection, which is closed here, and
        the bursts.
        """
        known = self._reached.get(name)
        if known is not None and known[0] == address:
            return known[2]
        cluster, found = reach()
        self._reached[name] = address, cluster, found
        if known is not None and known[1] is not None:
            known[1].close()
        return found

    def connection(self, name: str) -> Cluster:
        """Return the connection to a cluster that was reached."""
        cluster = self._reached[name][1]
        assert cluster is not None
        return cluster

    def last_in(self, name: str) -> _Bursts:
        """Return the bursts in a cluster as it was last reached.

        Without a call, as for an event. May be called from another thread than the
        rest. Raises NotFound where it was not reached yet.
        """
        known = self._reached.get(name)
        if known is None:
            raise NotFound(f"the cluster {name} was not reached yet")
        return known[2]

    def close_others(self, names: Sequence[str]) -> None:
        """Close all connections but those to these clusters."""
        for name in self._reached.keys() - set(names):
            _, cluster, _ = self._reached.pop(name)
            if cluster is not None:
                cluster.close()
