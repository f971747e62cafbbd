# SPDX-License-Identifier: MIT
"""Pods in a place that a provider makes: a cluster, a node pool, a node group.

A place costs money, so it is deleted even if pods are left in it (`MadePlaces.reap`).
The provider lists, makes and deletes its places. This module derives the status of a
burst from its place and its pods, in the same way for all providers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from burst.errors import NotFound, ProviderError
from burst.kits.lasting import Lasting
from burst.kits.pods.pod_bursts import PodBursts
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, Phase

LEAVE_S = 60.0
"""Seconds after which a place is deleted even if pods are left in it."""
_Bursts = TypeVar("_Bursts", bound=PodBursts)


class MadePlace(Protocol):
    """The place in which the pods of one burst run, as the cloud reports it."""

    @property
    def phase(self) -> Phase:
        """The state of the place. RUNNING: pods can be created there."""

    @property
    def why(self) -> str:
        """What is wrong with the place, or what it waits for; empty if nothing."""

    @property
    def failure(self) -> Failure:
        """The class of the failure, if the place has failed."""

    @property
    def has_nodes(self) -> bool:
        """Whether it has a node for each follower, which costs, with pods or not."""


class MadePlaces:
    """Deletes the places of one provider's bursts. For one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._leaving = Lasting(clock)
        """Bursts whose pods are being deleted. A restart of the daemon forgets for how
        long, so the pods then get LEAVE_S again."""

    def reap(
        self,
        burst_id: BurstId,
        place: MadePlace | None,
        reap_pods: Callable[[], None],
        delete: Callable[[], None],
    ) -> None:
        """Delete the pods with `reap_pods`, and then their place with `delete`.

        `place` is the present state of the place; None if there is none. `reap_pods`
        raises NotFound once there are no pods. Without a place, raises the error of
        `reap_pods`.
        """
        trouble: ProviderError | None = None
        try:
            reap_pods()
        except ProviderError as error:
            # There are no pods, or they cannot be read. Nodes cost money, so the place
            # is deleted in both cases.
            trouble = error
        late = self._leaving.seconds(burst_id) > LEAVE_S
        if place is not None:
            if place.phase is not Phase.ENDING and (late or trouble):
                delete()
        elif trouble is not None:
            self._leaving.end(burst_id)
            raise trouble


def describe_all(
    places: Mapping[BurstId, MadePlace],
    pods: Iterable[BurstStatus],
) -> list[BurstStatus]:
    """Return the status of each burst that has a place, or pods, or both."""
    listed = {status.burst_id: status for status in pods}
    bursts = sorted({*places, *listed})
    return [describe(each, places.get(each), listed.get(each)) for each in bursts]


def describe(
    burst_id: BurstId,
    place: MadePlace | None,
    pods: BurstStatus | None,
) -> BurstStatus:
    """Return the status of a burst; at least one of `place` and `pods` is not None.

    It is the status of its pods once pods can be created in its place, and also if the
    place has failed but a follower runs: some places that a cloud calls failed are only
    impaired, such as a node pool that lacks a node.
    """
    if place is None:
        assert pods is not None, "a burst has a place or pods"
        return pods
    if pods and (place.phase is Phase.RUNNING or _runs_nevertheless(place, pods)):
        why = "; ".join(filter(None, (pods.why, place.why)))
        return msgspec.structs.replace(pods, why=why, has_nodes=place.has_nodes)
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.PENDING if place.phase is Phase.RUNNING else place.phase,
        followers=pods.followers if pods else (),
        why=place.why or "its pods are not made yet",
        failure=place.failure,
        instance=pods.instance if pods else None,
        has_nodes=place.has_nodes,
    )


def _runs_nevertheless(place: MadePlace, pods: BurstStatus) -> bool:
    """Return whether a place is called failed in which a follower runs nevertheless."""
    alive = pods.phase in (Phase.PENDING, Phase.RUNNING)
    runs = any(each.phase is Phase.RUNNING for each in pods.followers)
    return place.phase is Phase.FAILED and alive and runs


class ReachedClusters(Generic[_Bursts]):
    """Keeps one `PodBursts` for each cluster, as it knows what has changed there.

    A cluster is identified by its name. If its address changes, as for a new cluster of
    the same name, a new connection is made.
    """

    def __init__(self) -> None:
        self._reached: dict[str, tuple[Hashable, _Bursts]] = {}

    def bursts(
        self, name: str, address: Hashable, reach: Callable[[], _Bursts]
    ) -> _Bursts:
        """Return the bursts in the cluster of this name at this address.

        `reach` connects to the cluster. This class closes the connection.
        """
        known = self._reached.get(name)
        if known is not None and known[0] == address:
            return known[1]
        found = reach()
        self._reached[name] = address, found
        if known is not None:
            known[1].cluster.close()
        return found

    def last_in(self, name: str) -> _Bursts:
        """Return the bursts in a cluster that was reached before, without a request.

        It may be called from another thread than the other methods, as for an event.
        Raises NotFound if the cluster was not reached yet.
        """
        known = self._reached.get(name)
        if known is None:
            raise NotFound(f"the cluster {name} was not reached yet")
        return known[1]

    def close_others(self, names: Sequence[str]) -> None:
        """Close all connections except those to these clusters."""
        for name in self._reached.keys() - set(names):
            _, bursts = self._reached.pop(name)
            bursts.cluster.close()
