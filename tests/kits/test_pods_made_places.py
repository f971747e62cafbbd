# SPDX-License-Identifier: MIT
"""Places that a provider makes: how they go, and what a burst is by its place."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from burst.errors import NotFound, ProviderError, Transient
from burst.kits.pods.made_places import (
    LEAVE_S,
    MadePlaces,
    ReachedClusters,
    describe_all,
)
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase

BURST = BurstId("burst-0-a")


class Place(NamedTuple):
    phase: Phase = Phase.RUNNING
    why: str = ""
    failure: Failure = Failure.OTHER
    has_nodes: bool = False


class Reaping:
    """A burst that is reaped, whose pods are gone or not."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.places = MadePlaces(lambda: self.now)
        self.deleted = 0

    def reap(self, place: Place | None, trouble: ProviderError | None = None) -> None:
        def reap_pods() -> None:
            if trouble:
                raise trouble

        def delete() -> None:
            self.deleted += 1

        self.places.reap(BURST, place, reap_pods, delete)


def test_a_place_goes_once_its_pods_are_gone() -> None:
    it = Reaping()
    it.reap(Place())
    assert it.deleted == 0
    it.reap(Place(), NotFound("no pods"))
    assert it.deleted == 1
    it.reap(Place(Phase.ENDING), NotFound("no pods"))
    assert it.deleted == 1
    with pytest.raises(NotFound, match="no pods"):
        it.reap(None, NotFound("no pods"))


def test_it_goes_although_pods_cannot_be_read_or_do_not_end() -> None:
    it = Reaping()
    it.reap(Place(), Transient("no answer"))
    assert it.deleted == 1
    it.now += LEAVE_S + 1
    it.reap(Place())
    assert it.deleted == 2


def test_a_clock_that_is_set_back_keeps_no_place() -> None:
    it = Reaping()
    it.reap(Place())
    it.now -= 3600
    it.reap(Place())
    assert it.deleted == 0, "the pods have their time, counted anew"
    it.now += LEAVE_S + 1
    it.reap(Place())
    assert it.deleted == 1


def test_without_a_place_the_pods_decide() -> None:
    it = Reaping()
    it.reap(None)
    with pytest.raises(Transient, match="no answer"):
        it.reap(None, Transient("no answer"))
    assert it.deleted == 0


@pytest.mark.parametrize(
    ("place", "pods", "phase", "why"),
    [
        (Place(), None, Phase.PENDING, "its pods are not made yet"),
        (Place(Phase.PENDING, "is made"), None, Phase.PENDING, "is made"),
        (Place(Phase.FAILED, "no VM"), None, Phase.FAILED, "no VM"),
        (Place(Phase.FAILED, "no VM"), Phase.PENDING, Phase.FAILED, "no VM"),
        (Place(Phase.FAILED, "no VM"), Phase.FAILED, Phase.FAILED, "no VM"),
        (Place(Phase.ENDING, "goes"), Phase.RUNNING, Phase.ENDING, "goes"),
        (Place(), Phase.RUNNING, Phase.RUNNING, "pods"),
        (Place(why="few nodes"), Phase.PENDING, Phase.PENDING, "pods; few nodes"),
        (None, Phase.PENDING, Phase.PENDING, "pods"),
    ],
)
def test_a_burst_is_what_its_place_and_its_pods_are(
    place: Place | None, pods: Phase | None, phase: Phase, why: str
) -> None:
    listed = [BurstStatus(burst_id=BURST, phase=pods, why="pods")] if pods else []
    (found,) = describe_all({BURST: place} if place else {}, listed)
    assert (found.burst_id, found.phase, found.why) == (BURST, phase, why)


@pytest.mark.parametrize("has_nodes", [True, False])
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    "pods", [[], [BurstStatus(burst_id=BURST, phase=Phase.PENDING)]]
)
def test_nodes_of_a_place_cost_also_without_pods(
    pods: list[BurstStatus], phase: Phase, *, has_nodes: bool
) -> None:
    place = Place(phase, has_nodes=has_nodes)
    (found,) = describe_all({BURST: place}, pods)
    assert found.has_nodes == has_nodes


@pytest.mark.parametrize("second", [Phase.RUNNING, Phase.PENDING, Phase.FAILED])
def test_followers_that_run_outlive_an_impaired_place(
    second: Phase,
) -> None:
    """One that lost its pod may get it again; the other's jobs go on until then."""
    pair = FollowerStatus("h0", Phase.RUNNING), FollowerStatus("h1", second)
    pods = BurstStatus(burst_id=BURST, phase=second, followers=pair)
    (found,) = describe_all({BURST: Place(Phase.FAILED, "no VM")}, [pods])
    assert (found.phase, found.why, found.followers) == (second, "no VM", pair)


def test_a_cluster_at_another_address_is_reached_anew() -> None:
    class Bursts:
        closed = False

        @property
        def cluster(self) -> Bursts:
            return self

        def close(self) -> None:
            self.closed = True

    made: list[Bursts] = []

    def reach() -> Bursts:
        made.append(Bursts())
        return made[-1]

    reached: Any = ReachedClusters()
    with pytest.raises(NotFound, match="the cluster far was not reached yet"):
        reached.last_in("far")
    found = [reached.bursts("far", url, reach) for url in ("a", "a", "b")]
    assert found == [made[0], made[0], made[1]]
    assert [each.closed for each in made] == [True, False]
    assert reached.last_in("far") is made[1]
    reached.close_others([])
    assert made[1].closed
