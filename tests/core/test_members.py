# SPDX-License-Identifier: MIT
"""Bursts of an ensemble's members, and the jobs that run on them."""

from __future__ import annotations

import msgspec
import pytest

from burst.core import commands
from burst.core.cost import idle_limit
from burst.core.plan.demands import Demand
from burst.model.burst import BurstId, Membership, State
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences
from tests.builders import job, settings, whole
from tests.sim import Sim

OURS = Membership("sweep/a", 100)


def request(sim: Sim, member: Membership | None, nodes: int = 2) -> BurstId:
    """Have the engine make a burst of a member."""
    demand = commands.request_nodes(nodes)
    if member:
        demand = commands.request_member(nodes, ("", ""), "", member)
    sim.tick(2)
    known: set[BurstId] = {burst.id for burst in sim.bursts}
    assert sim.request(demand)
    made: set[BurstId] = {burst.id for burst in sim.bursts} - known
    (new,) = made
    return new


def submit(sim: Sim, number: int, member: str, nodes: int = 2, userid: int = 100):
    preferences = BurstPreferences(member=member, urgency=16)
    sim.lead.jobs[JobId(number)] = job(
        number,
        whole(nodes),
        urgency=0,
        held_at_submit=True,
        userid=userid,
        preferences=preferences,
        t_submit=sim.now,
    )


def ran_on(sim: Sim, number: int) -> frozenset[int]:
    return sim.lead.jobs[JobId(number)].ranks


def online(sim: Sim) -> bool:
    return all(burst.state is State.ONLINE for burst in sim.bursts)


def test_a_job_is_given_a_burst_of_its_member() -> None:
    sim = Sim()
    other = request(sim, Membership("sweep/b", 100))
    own = request(sim, OURS)
    request(sim, None)
    sim.until(lambda: online(sim))
    submit(sim, 7, "sweep/a")
    sim.tick()
    records = sim.records
    assert JobId(7) in records.bursts[own].jobs
    assert not records.bursts[other].jobs
    sim.until(lambda: bool(ran_on(sim, 7)))
    assert records.bursts[own].lease.member == OURS


@pytest.mark.parametrize(
    ("member", "userid"), [("sweep/b", 100), ("sweep/a", 101), ("", 100)]
)
def test_no_other_job_is_given_nodes_of_a_member(member: str, userid: int) -> None:
    sim = Sim()
    own = request(sim, OURS, nodes=4)
    sim.until(lambda: online(sim))
    sim.lead.schedule = lambda: None  # type: ignore[method-assign]
    submit(sim, 7, member, nodes=3, userid=userid)
    sim.tick(20)
    assert not sim.records.bursts[own].jobs


def test_nothing_is_bought_for_a_job_of_a_member() -> None:
    sim = Sim()
    submit(sim, 7, "sweep/a")
    sim.tick(20)
    assert sim.bursts == []
    decision = sim.decision(JobId(7))
    assert decision.text() == (
        "it is for sweep/a, and no ensemble that runs has such a member for its user's"
        " jobs (burst ensemble status), so that it gets no nodes; flux cancel ends it"
    )
    # Not on own nodes either, where it would not be what the ensemble counts.
    submit(sim, 8, "sweep/a", nodes=1)
    sim.tick(20)
    assert not ran_on(sim, 8)


def test_a_job_does_not_join_the_burst_that_is_made_for_another_in_the_same_plan() -> (
    None
):
    sim = Sim()
    plain = job(6, whole(3), urgency=0, held_at_submit=True, t_submit=sim.now)
    sim.lead.jobs[JobId(6)] = msgspec.structs.replace(
        plain, preferences=BurstPreferences(urgency=16)
    )
    submit(sim, 7, "sweep/a", nodes=3)
    sim.tick(5)
    assert sim.burst.jobs | sim.burst.started == {JobId(6)}


def test_a_burst_of_a_member_is_kept_though_it_is_idle() -> None:
    sim = Sim(deadlines={"idle": "1m"})
    own = request(sim, OURS)
    plain = request(sim, None)
    sim.until(lambda: online(sim))
    sim.tick(100)
    records = sim.records
    assert records.bursts[own].state is State.ONLINE
    assert records.bursts[plain].state is not State.ONLINE
    assert idle_limit(records.bursts[own], settings()) > 1e9
    sim.take_down(own)
    sim.until(lambda: not sim.records.live)


def test_the_demand_of_a_member() -> None:
    demand = commands.request_member(2, ("kube", ""), "burst-0-[0-3]", OURS)
    assert demand == msgspec.structs.replace(
        commands.request_nodes(2, "kube", "burst-0-[0-3]"), member=OURS
    )
    assert isinstance(demand, Demand)
