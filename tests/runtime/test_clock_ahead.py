# SPDX-License-Identifier: MIT
"""What was written while the clock was years ahead counts from now after a restart."""

from __future__ import annotations

import pytest

from burst.model.burst import State
from burst.model.jobid import JobId
from burst.model.lead import QueueView
from tests.builders import whole
from tests.sim import Sim

YEARS = 10 * 365 * 86400.0


@pytest.fixture
def sim() -> Sim:
    made = Sim(
        deadlines={"idle": "20s", "rejoin": "20s", "release": "20s"},
        intake={"local_wait": "0s"},
    )
    made.tick(2)
    return made


def online(sim: Sim) -> JobId:
    """Submit a job of a whole slot; return it once its burst is online."""
    job: JobId = sim.lead.submit(whole(4))
    sim.until(sim.in_state(State.ONLINE))
    return job


def while_ahead(sim: Sim, *ticks: float) -> None:
    """Restart the daemon with a clock ahead, take ticks, and restart it again."""
    before = sim.now
    sim.now += YEARS
    sim.boot()
    for seconds in ticks:
        sim.tick(seconds=seconds)
    sim.now = before + 10.0
    sim.boot()


def test_a_burst_that_is_idle_since_then_ends_by_its_deadline(sim: Sim) -> None:
    sim.lead.finish(online(sim))
    while_ahead(sim, 1.0)
    assert "idle" in sim.names()
    sim.until(sim.in_state(State.INACTIVE))


def test_a_burst_that_lost_a_rank_then_ends_by_its_deadline(sim: Sim) -> None:
    online(sim)
    sim.joins = False
    sim.lead.online.discard(2)
    while_ahead(sim, 1.0)
    assert "lost" in sim.names()
    sim.until(lambda: sim.bursts[0].state is State.REAP)


def test_a_job_that_was_released_then_leaves_its_burst_by_its_deadline(
    sim: Sim,
) -> None:
    sim.joins = False
    sim.lead.submit(whole(4))
    sim.tick(3)
    sim.joins = True
    sim.lead.queues[""] = QueueView(started=False)
    sim.lead.schedule = lambda: None  # type: ignore[method-assign]
    while_ahead(sim, 1.0, 1.0)
    assert "job-release" in sim.names()
    sim.until(lambda: sim.bursts[0].state is State.INACTIVE)


def test_a_job_that_left_its_burst_then_is_tried_again(sim: Sim) -> None:
    schedule = sim.lead.schedule
    sim.lead.schedule = lambda: None  # type: ignore[method-assign]
    job = online(sim)
    while_ahead(sim, 1.0, 30.0)
    assert job not in sim.burst.jobs
    sim.lead.schedule = schedule  # type: ignore[method-assign]
    sim.until(lambda: job in sim.lead.running(), ticks=100)
