# SPDX-License-Identifier: MIT
"""While the daemon cannot decide: what is taken down, and what is refused."""

import pytest

from burst.core.burst_requests import request_nodes
from burst.core.commands import release_jobs
from burst.core.guest_requests import GuestLimits
from burst.core.guest_view import OWNER_SEES
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.tagged_jobs import IsolatedJobs
from burst.errors import BurstError, LeadError, StoreError
from burst.model.burst import State
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.builders import LENT, whole
from tests.core.isolation import BOTH, over, running, submit
from tests.core.tags import OURS
from tests.core.tags import submit as waits
from tests.runtime.asking import GUEST, Asking
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


@pytest.mark.parametrize("full", [True, False])
def test_what_would_be_begun_on_request_is_refused(full):
    sim = Sim.at_rest(deadlines={"idle": "1h"})
    sim.request(request_nodes(2))
    sim.until(sim.in_state(State.ONLINE))
    error: type[BurstError] = LeadError
    text = "^deciding has failed since .*; this is a defect of burst"
    if full:
        sim.lead.disk.full = True
        error, text = StoreError, "^no space left; make room"
    else:
        stop_deciding(sim)
    with pytest.raises(error, match=text):
        sim.request(request_nodes(2))
    assert len(sim.cloud.bursts) == 1
    wanted = WantedSize(sim.burst.id, 4)
    with pytest.raises(error, match=text):
        sim.ask(lambda tx: resize_burst(tx, wanted))
    assert sim.burst.resize is None
    sim.take_down(sim.burst.id)
    sim.until(lambda: not sim.cloud.bursts)


def test_an_isolated_burst_for_a_job_is_not_begun_on_request_either():
    """It would wait for the job to be held."""
    sim = Sim(modes=BOTH)
    waits(sim, 1, OURS)
    sim.tick(2)
    stop_deciding(sim)
    jobs = IsolatedJobs(tag=OURS, nodes=4, provider="local")
    with pytest.raises(LeadError, match="deciding has failed since"):
        sim.ask(lambda tx: jobs.start(tx, [JobId(1)]))


def test_a_guest_is_not_told_why():
    """The error may name jobs of others."""
    sim = Sim.at_rest(guests={"request_nodes": 4})
    stop_deciding(sim)
    snapshot = sim.engine.snapshot
    limits = GuestLimits(snapshot.records, snapshot.world, sim.settings, sim.now)
    with pytest.raises(LeadError, match=f"at present; {OWNER_SEES}$"):
        limits.check(1001, 2)


@pytest.mark.parametrize("guest", [False, True])
def test_no_burst_for_a_job_is_promised(guest):
    """It would be made once the daemon decides again, or be forgotten."""
    asking = Asking()
    asking.sim.fails = True
    job = asking.sim.lead.submit(STRANGE, userid=GUEST)
    stop_deciding(asking.sim)
    with pytest.raises(LeadError, match="at present" if guest else "deciding has"):
        asking.ask("request-job", guest, id=format_f58(job))
    assert job not in asking.sim.records.holds


def test_a_held_job_is_released_on_request():
    sim = Sim.at_rest()
    sim.joins = False
    job = sim.lead.submit(whole(4, constraint=LENT))
    sim.until(lambda: sim.lead.jobs[job].urgency == 0)
    stop_deciding(sim)
    sim.ask(lambda tx: release_jobs(tx, [job]))
    assert sim.lead.jobs[job].urgency == 16


def test_a_daemon_that_cannot_take_down_either_goes_on_and_says_so(caplog):
    sim = Sim.at_rest(deadlines={"idle": "5s"})
    sim.lead.finish(sim.run_job())
    sim.fails = True
    strange = sim.lead.submit(STRANGE, preferences=None, held_at_submit=True)
    sim.tick(20)
    halt = sim.engine.snapshot.world.halt
    assert halt.text().endswith("meanwhile the daemon does nothing")
    assert sim.state() is State.ONLINE
    assert caplog.text.count("deciding has failed; ") == 1
    assert caplog.text.count("taking down what is idle has failed, too") == 1
    assert len(sim.engine.snapshot.world.answered) < 3
    sim.lead.finish(strange, "canceled")
    del sim.lead.jobs[strange]
    sim.until(lambda: not sim.cloud.bursts)
    assert sim.engine.snapshot.world.halt is None


def test_only_the_log_has_the_text_of_each_error(caplog):
    """/readyz tells anyone why, and a text may have what a user submitted."""
    sim = Sim.at_rest()
    sim.fails = True

    class Odd:
        def __init__(self, error):
            self.error = error

        def __getattr__(self, name):
            raise self.error("of somebody")

    for error in (ValueError, KeyError):
        job = sim.lead.submit(STRANGE, preferences=Odd(error))
        sim.tick(2)
        text = sim.engine.snapshot.world.halt.text()
        assert error.__name__ in text
        assert "of somebody" not in text
        sim.lead.finish(job, "canceled")
    assert caplog.text.count("\nValueError: of somebody") == 1
    assert caplog.text.count("\nKeyError: 'of somebody'") == 1
