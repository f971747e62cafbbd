# SPDX-License-Identifier: MIT
"""Isolated bursts that fail, or take too long: their job is not begun again."""

import pytest

from burst.core.burst_story import sentence
from burst.core.isolated import behaviour
from burst.core.isolated.behaviour import IsolatedBehaviour
from burst.core.losses import last_event, taken_from
from burst.errors import InsufficientCapacity, Refused, SpecRefused
from burst.model.burst import Result, State
from burst.model.lead import JobState
from burst.provider import Failure
from burst.testing import FakeProvider
from tests.builders import but
from tests.core.isolation import BOTH, over, reason, running, submit
from tests.sim import Sim


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (InsufficientCapacity("no quota"), "capacity"),
        (Refused("credentials expired", "renew them"), "refused"),
    ],
)
def test_without_nodes_it_is_tried_again(sim, error, ended):
    sim.provider.next_provision_error = error
    job = submit(sim)
    sim.until(lambda: len(sim.bursts) == 1 and sim.burst.exception == ended)
    sim.until(lambda: len(sim.bursts) == 2, ticks=140, seconds=5.0)
    sim.until(over(sim))
    assert sim.cloud.begun == [sim.bursts[1].id]
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")
    sim.tick()
    assert [burst.sums.results for burst in sim.bursts] == [{}, {"completed": 1}]


def test_a_job_whose_program_may_be_refused_ends(sim):
    sim.provider.next_provision_error = SpecRefused("its jobspec is too large")
    job = submit(sim)
    sim.until(over(sim))
    sim.tick(3)
    assert len(sim.bursts) == 1
    assert reason(sim, job) == (
        f"isolated burst {sim.burst.id} should have run it, but its provider refuses to"
        " make the burst: spec: its jobspec is too large"
    )


@pytest.mark.parametrize("failure", [Failure.OTHER, Failure.CAPACITY])
def test_failed_while_it_runs_it_is_not_run_again(sim, failure):
    job = running(sim)
    sim.provider.fail(sim.burst.id, "node lost", failure)
    sim.until(over(sim))
    sim.tick(3)
    assert len(sim.bursts) == 1
    assert sim.burst.exception == "failed"
    assert "it may have begun there" in reason(sim, job)
    assert "node lost" in reason(sim, job)


@pytest.mark.parametrize("status", [0, 1])
def test_what_took_a_follower_is_told_if_the_program_fails_after_that(sim, status):
    """Another has begun in its place by then, which knows nothing of it."""
    job = running(sim)
    lost = [*sim.burst.lease.hosts[1:]]
    for host in lost:
        sim.provider.evict(sim.burst.id, host, "was evicted by its node")
        sim.tick(2)
    told = f"{sim.burst.id}-[1-2] was evicted by its node"
    event = last_event(sim.burst, "lost")
    assert event is not None
    assert sentence(event) == told
    assert [event.name for event in sim.burst.events].count("lost") == 1
    assert not taken_from(sim.burst, job, sim.lead.jobs[job]), "the decision says it"
    sim.provider.restore(sim.burst.id)
    sim.provider.ends_with = status
    sim.until(over(sim))
    sim.tick()
    after = f"; {told}" if status else ""
    assert reason(sim, job).endswith(f": exit status {status}{after}")
    why = taken_from(sim.burst, job, sim.lead.jobs[job])
    assert why == (f"burst {sim.burst.id}: {told}" if status else "")


def test_a_cause_that_the_end_of_its_job_names_is_not_told_twice(sim):
    job = running(sim)
    sim.provider.reclaim(sim.burst.id, ends=True)
    sim.until(over(sim))
    sim.tick()
    assert "the provider reclaimed" in reason(sim, job)
    assert not taken_from(sim.burst, job, sim.lead.jobs[job])


@pytest.mark.parametrize("state", [JobState.CLEANUP, JobState.RUN])
def test_a_job_that_is_ending_or_that_flux_started_meanwhile_is_not_ended(sim, state):
    """It was released by its user while the lead could not be read."""
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    sim.lead.unreadable = True
    sim.until(sim.in_state(State.REAP))
    sim.lead.change(job, state=state, ranks=frozenset({0}), t_start=sim.now)
    sim.lead.unreadable = False
    sim.tick(3)
    assert sim.lead.log == []
    assert sim.lead.jobs[job].state is state


def test_failed_before_it_is_up_counts_against_its_offer(sim):
    sim.provider.starts_only = 0
    submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    sim.tick()
    sim.provider.fail(sim.burst.id, "no node", Failure.CAPACITY)
    sim.until(over(sim))
    assert sim.burst.exception == "capacity"
    health = sim.records.health["local"]
    assert health.rows["offer/nodes"].failures == 1


def test_a_job_whose_pods_a_rule_of_the_place_denies_runs_elsewhere_or_later(sim):
    """None of them was made, so it has not run. The offer is set aside for a while."""
    sim.provider.starts_only = 0
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    sim.tick()
    sim.provider.fail(sim.burst.id, "denied by policy", Failure.REFUSED)
    sim.until(over(sim))
    assert sim.burst.exception == "refused"
    assert sim.records.health["local"].rows["offer/nodes"].why == "denied by policy"
    assert sim.lead.jobs[job].state is JobState.SCHED
    sim.provider.starts_only = None
    sim.until(lambda: len(sim.bursts) == 2, ticks=200, seconds=5.0)
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")


def test_a_rule_may_deny_the_image_that_a_job_asks_for(sim):
    """Then no other offer is tried, and none is set aside."""
    sim.provider.starts_only = 0
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    own = but(sim.burst, lease=but(sim.burst.lease, image="own"))
    sim.ask(lambda tx: tx.bursts.update({own.id: own}))
    sim.provider.fail(own.id, "denied by policy", Failure.REFUSED)
    sim.until(over(sim))
    sim.tick()
    assert sim.burst.exception == "spec"
    assert "local" not in sim.records.health
    assert "denied by policy" in reason(sim, job)


def test_every_wait_has_its_deadline():
    limits = {"join": "20s", "run": "30s"}
    for knob, why in (
        ({"starts_only": 0}, "not all followers were started within 20s"),
        ({"ends_with": None}, "its program did not end within"),
    ):
        sim = Sim(modes=BOTH, provision="20s", deadlines=limits)
        for key, value in knob.items():
            setattr(sim.provider, key, value)
        job = submit(sim)
        sim.until(over(sim), ticks=200)
        sim.tick()
        assert sim.burst.result is Result.TIMEOUT
        assert why in reason(sim, job)


def test_an_instance_that_does_not_come_up_has_a_deadline(sim):
    class Slow(FakeProvider):
        def _instance(self, burst, phase):
            found = super()._instance(burst, phase)
            return but(found, online=False, exit_status=None)

    sim.provider.__class__ = Slow
    job = submit(sim)
    sim.until(sim.in_state(State.JOIN))
    sim.until(over(sim), ticks=80, seconds=5.0)
    sim.tick()
    why = "its own instance was not up within 5m: its provider does not say why"
    assert reason(sim, job).endswith(why)


def test_the_jobs_own_limit_comes_before_the_sites(sim):
    sim.provider.ends_with = None
    submit(sim, duration=10.0)
    sim.until(sim.in_state(State.ONLINE))
    due = behaviour.run_until(sim.burst, sim.settings)
    assert due == sim.burst.since + 10.0 + behaviour.LATE
    assert IsolatedBehaviour().next_deadline(sim.burst, sim.settings) == due
