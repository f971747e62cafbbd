# SPDX-License-Identifier: MIT
"""Followers reach the lead at another address, while bursts come up and are online."""

from concurrent.futures import Future

from burst.model.burst import Result, State
from burst.model.lead import JobState
from burst.runtime.session import Session
from burst.wakeup import WakeUp
from tests.builders import but, settings, whole
from tests.fakes import FakeLead
from tests.sim import Sim

BEFORE, AFTER = "tcp://10.0.0.1:30093", "tcp://10.0.0.1:31000"


def move(sim: Sim) -> None:
    """Have the daemon notice that the lead is reached at another endpoint."""
    sim.now += 1
    sim.lead.known = but(sim.lead.known, endpoint=AFTER, moved=sim.now)
    sim.change()


def test_a_burst_whose_followers_cannot_join_is_made_anew() -> None:
    """They are paid for, and would be missed for as long as `[deadlines] join`."""
    sim = Sim(deadlines={"join": "1h"})
    sim.lead.known = but(sim.lead.known, endpoint=BEFORE)
    sim.boot()
    sim.tick(2)
    sim.joins = False
    job = sim.lead.submit(whole(4))
    sim.until(sim.in_state(State.JOIN))
    old = sim.burst.id
    move(sim)
    sim.tick()
    sim.joins = True
    sim.until(lambda: sim.lead.running() == [job])

    lost = sim.records.bursts[old]
    assert (lost.exception, lost.result) == ("lead-moved", Result.CANCELED)
    (note,) = [e.context["note"] for e in lost.events if e.name == "exception"]
    assert note == (
        "it was made with an old address of the lead, which followers cannot reach;"
        f" the address is now {AFTER}"
    )
    assert sim.records.health == {}
    (made,) = [burst for burst in sim.bursts if burst.id != old]
    assert made.lease.created >= sim.lead.known.moved
    assert made.state is State.ONLINE


def test_settings_with_another_address_are_noted_too() -> None:
    lead = FakeLead()
    session = Session(lead, settings(lead={"address": "10.0.0.1"}), WakeUp(), Future)
    for address, moves in (("10.0.0.1", False), ("10.0.0.9", True)):
        before = session.clock()
        session.replace(
            session.make_config(settings(lead={"address": address})).result()
        )
        seen = session.engine.snapshot.world.identity
        assert address in seen.endpoint
        assert (seen.moved >= before) == moves
    session.close()


def test_a_burst_that_is_online_goes_on() -> None:
    sim = Sim.at_rest()
    job = sim.run_job()
    move(sim)
    sim.tick(5)
    assert sim.burst.state is State.ONLINE
    assert sim.lead.jobs[job].state is JobState.RUN
