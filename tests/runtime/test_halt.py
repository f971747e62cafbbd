# SPDX-License-Identifier: MIT
"""While the daemon cannot decide: what is taken down, and what is refused."""

import pytest

from burst.model.burst import State
from burst.model.lead import JobState
from tests.builders import whole
from tests.core.isolation import BOTH, over, running, submit
from tests.sim import Sim

STRANGE = whole(4, constraint='{"hostlist":["burst-1-[0-3]"]}')


def stop_deciding(sim, ticks=1):
    """Submit a job of which nobody thought; return it."""
    sim.fails = True
    strange = sim.lead.submit(STRANGE, preferences=None)
    sim.lead.submit(STRANGE)
    sim.tick(ticks)
    assert sim.engine.snapshot.world.halt.what == "deciding"
    return strange


@pytest.mark.parametrize("by_hand", [True, False])
def test_an_isolated_burst_that_nobody_needs_is_deleted(by_hand):
    sim = Sim(modes=BOTH)
    job = running(sim)
    strange = stop_deciding(sim)
    if by_hand:
        sim.take_down(sim.burst.id)
    else:
        sim.lead.finish(job, "canceled")
    sim.until(lambda: not sim.cloud.bursts)
    if by_hand:
        # Its job is ended as soon as the daemon decides again.
        assert not sim.lead.log
        sim.lead.fail_job(strange, "")
        sim.tick(2)
        assert sim.lead.jobs[job].state is JobState.INACTIVE


def test_an_isolated_burst_whose_end_cannot_be_stored_either_stays():
    """Its result is nowhere but there and in the daemon's memory."""
    sim = Sim(modes=BOTH)
    job = running(sim)
    stop_deciding(sim)
    sim.lead.disk.full = True
    sim.provider.ends_with = 0
    sim.tick(30)
    assert sim.cloud.bursts
    assert job in sim.burst.jobs
    sim.lead.disk.full = False
    sim.until(over(sim))
    assert sim.burst.exit_status == 0


def test_no_call_for_an_isolated_burst_is_recorded_that_is_not_made():
    """After its deadline its job would end, as it might have run."""
    sim = Sim(modes=BOTH, provision="20s")
    sim.tick(2)
    job = submit(sim)
    sim.tick()
    assert sim.state() is State.NEW
    strange = stop_deciding(sim, ticks=60)
    assert sim.state() is State.NEW
    sim.lead.fail_job(strange, "")
    sim.until(lambda: bool(sim.cloud.begun))
    assert job in sim.live[0].jobs
