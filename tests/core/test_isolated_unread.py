# SPDX-License-Identifier: MIT
"""A deadline ends no isolated burst before its provider was read after it."""

import pytest

from burst.core.burst_story import next_step_of
from burst.core.isolated.behaviour import run_until
from burst.core.provider_calls import is_overdue
from burst.errors import InsufficientCapacity, Refused, SpecRefused, Transient
from burst.model.burst import Result, State
from burst.model.reason import Reason
from burst.testing import FakeProvider
from tests.builders import but
from tests.core.isolation import BOTH, over, reason, submit
from tests.sim import Sim


class Slow(FakeProvider):
    """Shows no instance online while `up` is False."""

    up = False

    def _instance(self, burst, phase):
        found = super()._instance(burst, phase)
        return found if self.up else but(found, online=False, exit_status=None)


class SlowSim(Sim):
    provider_type = Slow


class TickingSim(SlowSim):
    """Its provider is called, and read a moment after that."""

    looks = 0

    def clock(self):
        self.looks += 1
        return self.now + self.looks * 1e-4


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


@pytest.fixture
def slow():
    return SlowSim(modes=BOTH)


@pytest.fixture
def ticking():
    return TickingSim(modes=BOTH)


def away(sim, ticks=40):
    """The provider does not answer for some ticks of ten seconds each."""
    sim.cloud.reachable = False
    sim.tick(ticks, seconds=10.0)
    sim.cloud.reachable = True


def test_a_program_that_ended_while_no_daemon_ran_has_its_result(sim):
    sim.provider.ends_with = None
    submit(sim, duration=600.0)
    sim.until(sim.in_state(State.ONLINE))
    sim.now += 3600.0
    sim.boot()
    sim.until(over(sim))
    assert sim.burst.exit_status == 0
    assert sim.burst.result is Result.COMPLETED


@pytest.mark.parametrize("limit", [{"duration": 200.0}, {}])
def test_a_program_that_ended_while_its_provider_was_away_has_its_result(sim, limit):
    if not limit:
        sim = Sim(modes=BOTH, deadlines={"run": "200s"})
    sim.provider.ends_with = None
    submit(sim, **limit)
    sim.until(sim.in_state(State.ONLINE))
    away(sim)
    assert sim.state() is State.ONLINE
    sim.provider.ends_with = 3
    sim.until(over(sim))
    assert sim.burst.exit_status == 3


@pytest.mark.parametrize("status", [0, None])
def test_one_whose_lease_is_over_has_its_result_if_there_is_one(status):
    sim = Sim(modes=BOTH, deadlines={"lease": "200s", "drain": "10s"})
    sim.provider.ends_with = None
    submit(sim, duration=180.0)
    sim.until(sim.in_state(State.ONLINE))
    assert sim.burst.lease.end < run_until(sim.burst, sim.settings)
    away(sim, ticks=21)
    sim.provider.ends_with = status
    sim.until(over(sim))
    assert sim.burst.exit_status == status
    if status is None:
        assert sim.burst.events[-2].context["note"] == "its lease is over"


@pytest.mark.parametrize("state", [State.PROVISION, State.JOIN])
def test_an_instance_that_came_up_while_its_provider_was_away_goes_on(slow, state):
    if state is State.PROVISION:
        slow.provider.starts_after = 20
    slow.provider.ends_with = None
    submit(slow)
    slow.until(slow.in_state(state))
    slow.tick()
    away(slow, ticks=90)
    assert slow.state() is state
    slow.provider.starts_after, slow.provider.up = 0, True
    slow.until(slow.in_state(State.ONLINE))
    assert slow.burst.exception == ""


def test_one_that_was_to_be_made_while_no_daemon_ran_is_looked_for_first(slow):
    """Were it asked for again at once, its first answer would be older than that."""
    slow.provider.starts_after = 20
    submit(slow)
    slow.until(slow.in_state(State.PROVISION))
    slow.tick(2)
    slow.now += 3600.0
    slow.boot()
    slow.provider.up = True
    slow.until(over(slow))
    assert slow.burst.exit_status == 0
    assert slow.cloud.begun == [slow.burst.id]


def test_one_that_is_up_goes_on_though_calls_to_make_it_fail(sim):
    """Its provider made it, and lost the answer."""
    sim.provider.next_answer_lost, sim.provider.ends_with = True, None
    sim.provider.starts_after = 20
    submit(sim)
    sim.until(lambda: sim.cloud.begun)
    sim.provider.every_provision_error = Transient("busy", "call again")
    sim.until(sim.in_state(State.ONLINE), ticks=100)
    sim.provider.ends_with = 0
    sim.until(over(sim))
    assert sim.burst.exit_status == 0


@pytest.mark.parametrize("error", [Refused, SpecRefused, InsufficientCapacity])
def test_one_that_is_up_goes_on_though_a_second_call_is_refused(ticking, error):
    slow = ticking
    slow.provider.starts_after = 20
    submit(slow)
    slow.until(slow.in_state(State.PROVISION))
    slow.tick(2)
    slow.boot()
    slow.provider.up, slow.provider.ends_with = True, None
    slow.provider.next_provision_error = error("no more", "wait")
    slow.until(slow.in_state(State.ONLINE))
    assert slow.provider.next_provision_error is None
    assert len(slow.bursts) == 1
    slow.provider.ends_with = 0
    slow.until(over(slow))
    assert slow.burst.exit_status == 0


def expired(sim, *, rebooted=False):
    """The credentials expire while a job is held for a burst, or after a first call."""
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION) if rebooted else lambda: sim.bursts)
    sim.fake_settings = but(sim.fake_settings, credentials="expired")
    sim.provider.settings = sim.fake_settings
    if rebooted:
        sim.boot()
    sim.until(lambda: "provision" in {call.method for call in sim.provider.calls})
    return job


def next_step(sim):
    world = sim.engine.snapshot.world
    return next_step_of(sim.burst, sim.settings, world, sim.now)


def test_one_whose_first_call_is_refused_ends_though_its_provider_cannot_be_read(sim):
    job = expired(sim)
    sim.tick(3)
    assert sim.burst.exception == "refused"
    (refusal,) = sim.decision(job).refusals
    assert refusal.reason is Reason.DISABLED
    assert sim.cloud.begun == []


def test_one_that_is_refused_after_a_restart_ends_only_once_it_was_looked_for(sim):
    """The daemon before may have made it."""
    expired(sim, rebooted=True)
    sim.tick(120, seconds=10.0)
    assert sim.state() is State.PROVISION
    assert is_overdue(sim.burst)
    assert "retry" not in {event.name for event in sim.burst.events}
    assert next_step(sim).startswith("the daemon ends it once provider local was read")
    sim.provider.settings = but(sim.provider.settings, credentials="good")
    sim.until(lambda: len(sim.bursts) == 2, ticks=90)
    refused, second = sim.bursts
    assert refused.exception == "refused"
    sim.until(over(sim))
    assert sim.cloud.begun == [second.id]


@pytest.mark.parametrize("listed_after", [0, 8])
def test_one_that_is_refused_after_it_was_made_may_have_run(sim, listed_after):
    """Its program may begin until it is deleted. It may be listed late."""
    sim.provider.next_answer_lost, sim.provider.starts_after = True, 20
    sim.provider.listed_after = listed_after
    job = submit(sim)
    sim.until(lambda: sim.cloud.begun)
    sim.provider.every_provision_error = Refused("credentials expired", "renew them")
    sim.until(over(sim), ticks=100)
    sim.tick(3)
    assert len(sim.bursts) == 1
    assert "it may have begun there" in reason(sim, job)


def test_one_that_takes_too_long_ends_once_its_provider_is_read(sim):
    sim.provider.ends_with = None
    submit(sim, duration=200.0)
    sim.until(sim.in_state(State.ONLINE))
    away(sim)
    sim.until(over(sim))
    assert sim.burst.result is Result.TIMEOUT
    assert sim.burst.exception == "timeout"


def test_a_provider_that_is_not_enabled_is_named(sim):
    sim.provider.ends_with = None
    submit(sim, duration=200.0)
    sim.until(sim.in_state(State.ONLINE))
    sim.enabled = False
    sim.boot()
    sim.tick(120, seconds=10.0)
    assert sim.state() is State.ONLINE
    (told,) = [e for e in sim.burst.events if e.name == "overdue"]
    assert told.context["note"].endswith("local was read again: it is not enabled")


def test_a_person_is_told_of_a_deadline_that_nobody_judges(slow):
    slow.provider.ends_with = None
    submit(slow)
    slow.until(slow.in_state(State.JOIN))
    away(slow, ticks=60)
    assert not is_overdue(slow.burst), "a restart needs a moment, too"
    away(slow, ticks=60)
    (told,) = [e for e in slow.burst.events if e.name == "overdue"]
    assert "provider local" in told.context["note"]
    assert is_overdue(slow.burst)
    slow.take_down(slow.burst.id)
    assert slow.state() is State.REAP
    slow.until(over(slow))
