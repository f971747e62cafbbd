# SPDX-License-Identifier: MIT
"""Isolated bursts as they are asked for: modes, limits, leases, commands."""

import math

import pytest

from burst.core import burst_requests
from burst.core.isolated.behaviour import IsolatedBehaviour
from burst.core.report import find_isolated
from burst.errors import BurstError
from burst.model.burst import Isolated, Result, State
from burst.model.lead import GuestAccess
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.provider import OUTPUT_MOST
from tests.builders import but, identity, whole
from tests.core.isolation import BOTH, over, reason, submit
from tests.fakes import FakeLead
from tests.sim import Sim


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


def test_one_without_a_job_stays_until_it_is_taken_down(sim):
    sim.tick(2)
    wanted = Isolated(kind="interactive")
    for _ in range(2):
        demand = burst_requests.request_isolated(2, "", wanted)
        assert sim.request(demand).reason is Reason.PROPOSED
    assert len({burst.id for burst in sim.bursts}) == 2
    sim.until(lambda: all(b.state is State.ONLINE for b in sim.bursts))
    assert IsolatedBehaviour().next_deadline(sim.bursts[0], sim.settings) == math.inf
    sim.tick(50, seconds=20.0)
    assert {b.state for b in sim.bursts} == {State.ONLINE}
    down = sim.bursts[0].id
    sim.take_down(down)
    sim.until(lambda: sim.bursts[0].state is State.INACTIVE)
    assert sim.bursts[0].result is Result.CANCELED
    assert sim.bursts[1].state is State.ONLINE


def test_two_of_one_moment_have_two_names(sim):
    sim.tick(2)
    demand = burst_requests.request_isolated(1, "", Isolated(kind="interactive"))
    for _ in range(2):
        sim.engine.post(lambda tx: burst_requests.make_requested_burst(tx, demand))
    sim.tick()
    assert len({burst.id for burst in sim.bursts}) == 2


def test_a_lease_ends_it():
    sim = Sim(modes=BOTH, deadlines={"lease": "40s", "drain": "30s"})
    sim.tick(2)
    sim.request(burst_requests.request_isolated(1, "", Isolated(kind="service")))
    sim.until(sim.in_state(State.ONLINE))
    sim.until(over(sim), ticks=100)
    assert sim.burst.result is Result.TIMEOUT
    assert sim.burst.since - sim.burst.lease.created >= 40


@pytest.mark.parametrize(
    ("kind", "lines"), [("command", ("hostname",)), ("batch", ("-N2 hostname", "date"))]
)
def test_a_command_or_a_listing_runs_without_a_job(sim, kind, lines):
    sim.tick(2)
    wanted = Isolated(kind=kind, command=lines)
    sim.request(burst_requests.request_isolated(2, "local", wanted))
    sim.until(over(sim))
    assert sim.burst.exit_status == 0
    records = sim.records
    assert find_isolated(records, sim.burst.id) == sim.burst


def test_limits_hold_for_it():
    sim = Sim(modes=BOTH, limits={"max_bursts": 1, "max_nodes_per_user": 4})
    sim.provider.ends_with = None
    first, second = submit(sim), submit(sim, urgency=20)
    sim.until(sim.in_state(State.ONLINE))
    verdict = sim.decision(first)
    assert [r.reason for r in verdict.refusals] == [Reason.LIMIT_BURSTS]
    assert sim.burst.jobs == {second}
    large = submit(sim, nodes=5)
    sim.tick(2)
    assert sim.decision(large).reason is Reason.TURNED_DOWN


@pytest.mark.parametrize(
    ("modes", "mode", "why"),
    [
        (("joined",), "isolated", Reason.NOT_ISOLATED),
        (("isolated",), "joined", Reason.NOT_JOINED),
    ],
)
def test_a_job_gets_the_mode_that_it_asks_for_or_none(modes, mode, why):
    sim = Sim(modes=modes)
    job = submit(sim, preferences=BurstPreferences(mode=mode, wait=0))
    sim.tick(4)
    verdict = sim.decision(job)
    assert [refusal.reason for refusal in verdict.refusals] == [why]
    assert sim.bursts == []


@pytest.mark.parametrize(
    ("guests", "owner", "made"),
    [(False, None, True), (True, 1000, True), (True, 0, False), (True, None, False)],
    ids=["no guests", "of the owner", "of a guest", "owner not known"],
)
def test_a_guests_job_gets_no_isolated_burst(guests, owner, made):
    access = GuestAccess(allow_guest_user=guests)
    known = identity(access=access, owner_userid=owner)
    sim = Sim(FakeLead(known=known), modes=BOTH)
    job = submit(sim, userid=1000)
    sim.tick(6)
    assert bool(sim.bursts) is made
    if not made:
        (refusal,) = sim.decision(job).refusals
        assert refusal.reason is Reason.ISOLATED_OF_GUEST


def test_a_user_who_is_let_in_meanwhile_gets_none_before_that_is_known():
    sim = Sim(FakeLead(known=identity(owner_userid=1000)), modes=BOTH)
    submit(sim, userid=1001)
    submit(sim, userid=1000)
    sim.tick(6)
    assert [burst.lease.userids for burst in sim.bursts] == [(1000,)]


@pytest.mark.parametrize("userid", [1000, 1001], ids=["owner", "guest"])
@pytest.mark.parametrize("guests", [False, True])
def test_no_nodes_are_made_for_a_guest_on_which_his_job_would_fail(userid, guests):
    access = GuestAccess(allow_guest_user=True)
    known = identity(access=access, owner_userid=1000)
    sim = Sim(FakeLead(known=known))
    sim.fake_settings = but(sim.fake_settings, guests=guests)
    sim.boot()
    job = sim.lead.submit(whole(3), userid=userid)
    sim.tick(6)
    made = guests or userid == 1000
    assert bool(sim.bursts) is made
    if not made:
        (refusal,) = sim.decision(job).refusals
        assert refusal.reason is Reason.NO_GUESTS


def test_it_needs_neither_rank_slots_nor_an_address():
    for known in (identity("lead-[0-1]"), identity(endpoint="")):
        sim = Sim(FakeLead(known=known), modes=BOTH)
        job = submit(sim)
        other = sim.lead.submit(whole(4), preferences=BurstPreferences(mode="joined"))
        sim.until(over(sim))
        sim.tick()
        assert reason(sim, job).endswith("exit status 0")
        lacks = Reason.NO_SLOTS if known.endpoint else Reason.NO_ADDRESS
        assert sim.decision(other).reason is lacks


def test_a_command_longer_than_a_record_may_keep_is_refused():
    wanted = Isolated(
        kind="command", command=("echo", "x" * burst_requests.LONGEST_COMMAND)
    )

    with pytest.raises(BurstError, match="the command has 16388 bytes; 16384 is the"):
        burst_requests.request_isolated(1, "", wanted)


def test_what_a_burst_wrote_is_cut_at_its_beginning(sim):
    wanted = Isolated(kind="command", command=("true",))
    sim.provider.writes = "é" * 1_000_000 + "the end"
    sim.tick(2)
    sim.request(burst_requests.request_isolated(1, "", wanted))
    sim.until(over(sim))

    output = sim.records.outputs[sim.burst.id]
    assert output.endswith("éthe end")
    assert OUTPUT_MOST - 2 < len(output.encode()) <= OUTPUT_MOST
