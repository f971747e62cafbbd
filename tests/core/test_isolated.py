# SPDX-License-Identifier: MIT
"""Isolated bursts, by the engine's ticks: once, ended here, and gone there."""

import math

import pytest

from burst.core.isolated import behaviour
from burst.core.plan.capacity import lending_bursts
from burst.core.records import Records
from burst.core.report import status
from burst.model.burst import Result, State
from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.core.isolation import BOTH, over, reason, running, submit
from tests.sim import Sim


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


def test_a_job_runs_there_once_and_is_ended_here(sim):
    job = submit(sim)
    sim.until(over(sim))
    sim.tick()
    burst = sim.burst
    assert sim.cloud.begun == [burst.id]
    assert sim.cloud.bursts == {}
    names = ["submit", "provision-start", "finish", "job-finish", "reaped"]
    assert sim.names() == names
    assert (burst.result, burst.exit_status) == (Result.COMPLETED, 0)
    assert reason(sim, job) == f"ran in isolated burst {burst.id}: exit status 0"
    told = sim.lead.memos[job]
    assert told["state"] == "exit 0"
    assert told["output"] == "done\n"
    assert told["burst"] == burst.id
    assert sim.records.outputs == {burst.id: "done\n"}
    assert sim.lead.online == {0, 1}
    assert burst.lease.ranks == ()
    assert burst.lease.hosts == tuple(f"{burst.id}-{n}" for n in range(3))


def test_it_is_not_begun_before_flux_cannot_start_the_job(sim):
    sim.lead.deaf = True
    submit(sim)
    sim.tick(20)
    assert sim.state() is State.NEW
    assert sim.cloud.begun == []
    sim.lead.deaf = False
    sim.until(lambda: sim.cloud.begun)


def test_what_is_held_must_have_been_for_a_moment(sim):
    submit(sim)
    sim.tick(seconds=0.3)
    sim.tick(3, seconds=0.3)
    assert sim.state() is State.NEW
    held = sim.records
    assert behaviour.next_provision(held, sim.now) > sim.now
    assert behaviour.next_provision(Records(), sim.now) == math.inf
    sim.tick(3, seconds=0.3)
    assert sim.state() is not State.NEW


def test_a_job_that_cannot_be_held_is_given_up():
    sim = Sim(modes=BOTH, provision="5s")
    sim.lead.deaf = True
    submit(sim)
    sim.tick(12)
    assert sim.names(sim.bursts[0])[-2:] == ["exception", "reaped"]
    assert sim.bursts[0].exception == "not-held"
    assert sim.bursts[0].result is Result.CANCELED
    assert sim.cloud.begun == []


@pytest.mark.parametrize(
    ("code", "status", "result"),
    [(0, 0, "completed"), (3, 3, "failed"), (-9, 137, "failed"), (256, 255, "failed")],
)
def test_the_job_has_the_result_of_its_run(sim, code, status, result):
    """A status that no process has is no success."""
    sim.provider.ends_with = code
    job = submit(sim)
    sim.until(over(sim))
    assert sim.burst.exit_status == status
    assert sim.lead.log == [("finish", job, f"exit status {status}")]
    assert sim.lead.jobs[job].result == result
    assert reason(sim, job).endswith(f": exit status {status}")


def test_a_job_that_cannot_be_given_its_result_is_ended_with_the_reason(sim):
    sim.lead.can_finish = False
    job = submit(sim)
    sim.until(over(sim))
    told = f"ran in isolated burst {sim.burst.id}: exit status 0"
    assert sim.lead.log == [("fail", job, told)]
    assert sim.lead.jobs[job].result == "failed"


@pytest.mark.parametrize("state", [JobState.RUN, JobState.CLEANUP])
def test_what_a_crash_cut_short_is_asked_for_again(sim, state):
    """Flux has taken in the allocation that is none, and not what comes after it."""
    asked = []

    def cut_short(job, status, output):
        asked.append((job, status, output))
        sim.lead.change(job, state=state)
        return True

    sim.lead.finish_job = cut_short
    job = submit(sim)
    sim.until(over(sim))
    sim.tick(2)
    assert len(asked) > 2
    assert set(asked) == {(job, 0, "done\n")}


def test_what_it_writes_may_be_anything(sim):
    sim.provider.writes = "a\0b\n" + "x" * 2000
    job = submit(sim)
    sim.until(over(sim))
    assert sim.records.outputs[sim.burst.id].startswith("a\ufffdb\n")
    assert sim.lead.memos[job]["output"] == "x" * 1000


def test_a_job_is_told_how_far_it_is_and_stays_held(sim):
    sim.provider.ends_with = None
    sim.provider.starts_after = 3
    job = submit(sim)
    sim.until(sim.in_state(State.PROVISION))
    assert sim.lead.memos[job]["state"] == "isolated new"
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(3)
    assert sim.lead.memos[job]["state"] == "isolated online"
    assert sim.lead.jobs[job].urgency == 0
    verdict = sim.decision(job)
    assert verdict.reason is Reason.ISOLATED_ACTIVE
    records, world = sim.records, sim.engine.snapshot.world
    assert lending_bursts(records, world.lead, sim.settings, sim.now) == []
    (row,) = status(records, world, (), {}, sim.now)["bursts"]
    assert row["online"] == row["nodes"] == 3
    assert row["isolated"] == "job"
    assert row["access"] == f"shell {sim.burst.id}-0"
    assert sim.explained(job)["bursts"][0]["id"] == sim.burst.id
    assert sim.lead.lent == []


def test_an_unreadable_lead_does_not_lose_the_end(sim):
    job = submit(sim)
    sim.until(lambda: sim.cloud.begun)
    sim.lead.unreadable = True
    sim.tick(5)
    assert sim.state() is State.REAP
    sim.lead.unreadable = False
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("exit status 0")
    assert sim.burst.jobs == frozenset()


def test_nothing_is_begun_at_a_provider_that_is_not_enabled(sim):
    """After a restart; the job is let go once the provision deadline has passed."""
    job = submit(sim)
    sim.until(sim.in_state(State.NEW))
    sim.enabled = False
    sim.boot()
    sim.tick(3)
    assert sim.state() is State.NEW
    assert sim.cloud.begun == []
    sim.tick(20, seconds=50.0)
    assert sim.state() is State.REAP
    assert sim.burst.exception == "not-held"
    why = str(sim.burst.events[-1].context["note"])
    assert "provider local could not be called within 15m" in why
    sim.enabled = True
    sim.boot()
    sim.until(lambda: len(sim.cloud.begun) == 1)
    assert sim.bursts[-1].jobs == {job}


def test_a_job_that_is_gone_ends_its_burst(sim):
    job = running(sim)
    sim.lead.finish(job, "canceled")
    sim.until(over(sim))
    assert sim.burst.result is Result.CANCELED
    assert sim.lead.log == []


def test_a_job_that_is_gone_at_once_has_nothing_begun(sim):
    job = submit(sim)
    sim.until(sim.in_state(State.NEW), seconds=0.1)
    sim.lead.finish(job, "canceled")
    sim.until(over(sim))
    assert sim.cloud.begun == []


def test_a_job_that_its_user_takes_back_runs_here_alone(sim):
    job = running(sim)
    sim.lead.change(job, urgency=16)
    sim.joins = False
    sim.meet = lambda: sim.lead.online.add(2)
    sim.until(over(sim))
    sim.tick(5)
    assert sim.burst.exception == "not-held"
    assert sim.lead.log == []
    assert sim.lead.jobs[job].state is JobState.RUN
    assert len(sim.bursts) == 1


def test_a_time_limit_that_is_changed_before_it_begins_is_the_one_it_has(sim):
    job = submit(sim, duration=60.0)
    sim.until(sim.in_state(State.NEW), seconds=0.1)
    sim.lead.change(job, duration=7200.0)
    sim.until(lambda: sim.cloud.begun)
    (begun,) = [b for b in sim.bursts if b.state is not State.INACTIVE]
    assert begun.lease.isolated.duration == 7200.0
    sim.until(lambda: sim.lead.log)
    assert reason(sim, job).endswith("exit status 0")
