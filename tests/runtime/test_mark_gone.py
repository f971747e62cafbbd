# SPDX-License-Identifier: MIT
"""A daemon that starts without the rule that marked the jobs of the one before it."""

from burst.core.commands import held_jobs
from burst.model.burst import State
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.builders import whole
from tests.sim import Sim


def restart_without_rule(sim: Sim) -> None:
    """Have a new daemon for which no job is burstable."""
    sim.lead.unmarked = set(sim.lead.jobs)
    sim.boot()


def with_held_job(urgency: int = 16) -> tuple[Sim, JobId]:
    """Return a daemon whose limits hold a job, and the job."""
    sim = Sim.at_rest(limits={"max_nodes": 1})
    job = sim.lead.submit(whole(4), urgency=urgency)
    sim.until(lambda: held_jobs(sim.records) == [job])
    sim.tick(2)
    return sim, job


def test_a_held_job_is_released_before_it_is_forgotten() -> None:
    sim, job = with_held_job(urgency=20)
    assert sim.lead.jobs[job].urgency == 0

    restart_without_rule(sim)
    sim.tick(3)

    assert sim.lead.jobs[job].urgency == 20
    assert sim.decision(job).reason is Reason.NOT_BURSTABLE
    assert not held_jobs(sim.records)
    assert sim.lead.memos[job]["state"] == "left-alone"
    sim.lead.finish(job)
    sim.tick(2)
    assert not sim.records.holds


def test_it_is_released_again_if_the_first_time_had_no_effect() -> None:
    sim, job = with_held_job()
    restart_without_rule(sim)
    sim.lead.deaf = True
    sim.tick(3)
    assert sim.lead.jobs[job].urgency == 0
    sim.lead.deaf = False
    sim.boot()
    sim.tick(5)

    assert sim.lead.jobs[job].urgency == 16
    assert sim.records.holds[job].state is HoldState.RELEASED


def test_a_job_whose_nodes_are_on_the_way_gets_them() -> None:
    sim = Sim(deadlines={"idle": "5s"})
    sim.joins = False
    sim.tick(2)
    job = sim.lead.submit(whole(4))
    sim.until(sim.in_state(State.JOIN))

    restart_without_rule(sim)
    sim.tick(3)
    assert sim.lead.jobs[job].urgency == 0
    sim.joins = True

    sim.until(lambda: sim.lead.running() == [job])
    assert len(sim.bursts) == 1
    sim.end_job(job)
    assert not sim.records.holds


def test_a_job_that_runs_elsewhere_is_not_given_back_to_run_twice() -> None:
    sim = Sim(modes=("isolated",))
    sim.provider.runs_for = 1000
    sim.tick(2)
    job = sim.lead.submit(whole(4))
    sim.until(sim.in_state(State.ONLINE))

    restart_without_rule(sim)
    sim.provider.runs_for = 1000
    sim.tick(20)

    assert sim.lead.jobs[job].urgency == 0
    assert sim.burst.state is State.ONLINE
    sim.provider.runs_for = 1
    sim.until(sim.in_state(State.INACTIVE))
    assert sim.lead.jobs[job].state is JobState.INACTIVE
    assert sim.cloud.begun == [sim.burst.id]
