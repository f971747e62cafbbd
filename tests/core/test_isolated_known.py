# SPDX-License-Identifier: MIT
"""Isolated bursts on record: restarts, lost records, what is seen of them."""

import pytest

from burst.core import lifecycle
from burst.core.isolated import observation
from burst.core.isolated.observation import InstancePhase
from burst.core.observation import Observation, ProviderPhase
from burst.core.report import find_isolated
from burst.errors import LeadError
from burst.model.burst import Isolated, State
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from tests.builders import T0, but, whole
from tests.core.isolation import BOTH, over, reason, running, spec_of, submit
from tests.lifecycles import LEASE
from tests.sim import Sim


@pytest.fixture
def sim():
    return Sim(modes=BOTH)


def spoil_job(sim, job):
    """Start the daemon again, with the record of a burst's job spoiled."""
    sim.lead.disk.records[f"job/{sim.burst.id}/{job}"] = "{"
    sim.boot()
    sim.tick(5)
    assert sim.burst.quarantined
    assert sim.decision(job).reason is Reason.ISOLATED_QUARANTINED


@pytest.mark.parametrize("restarted", [False, True])
def test_its_job_is_known_by_the_lease_where_its_own_record_is_lost(sim, restarted):
    job = running(sim)
    spoil_job(sim, job)
    if restarted:
        fail_job, sim.lead.fail_job = sim.lead.fail_job, lambda job, reason: None
    sim.take_down(sim.burst.id)
    if restarted:
        sim.boot()
        sim.lead.fail_job = fail_job
    sim.until(over(sim))
    sim.tick(5)
    assert reason(sim, job).endswith("canceled: odd")
    assert sim.cloud.begun == [sim.burst.id]
    assert not sim.records.unreadable


def test_the_job_of_one_that_has_ended_is_known_by_the_lease_and_then_ended(sim):
    job = submit(sim)
    finish_job, sim.lead.finish_job = sim.lead.finish_job, lambda *_: True
    sim.until(over(sim))
    spoil_job(sim, job)
    sim.lead.finish_job = finish_job
    sim.take_down(sim.burst.id)
    sim.tick(5)
    assert reason(sim, job).endswith("exit status 0")
    assert sim.cloud.begun == [sim.burst.id]


@pytest.mark.parametrize("text", ["{", ""])
def test_its_job_is_known_by_its_key_where_the_record_of_the_burst_is_lost(text):
    """It could run here, and does not: it may run there."""
    sim = Sim(modes=("isolated", "joined"))
    sim.provider.ends_with = None
    sim.lead.online = {0}
    job = sim.lead.submit(whole(2), preferences=BurstPreferences(wait=0))
    sim.until(sim.in_state(State.ONLINE))
    name, records = sim.burst.id, sim.lead.disk.records
    records[f"burst/{name}"] = text
    if not text:
        del records[f"burst/{name}"]
    records[f"job/{name}/x"] = "{"
    sim.lead.online = {0, 1}
    sim.boot()
    sim.provider.ends_with = None
    sim.tick(10)
    verdict = sim.decision(job)
    assert verdict.reason is Reason.ISOLATED_QUARANTINED
    assert verdict.facts["burst"] == name
    assert sim.lead.jobs[job].state is JobState.SCHED

    sim.take_down(name)
    sim.boot()
    sim.until(over(sim))
    sim.tick(5)

    assert reason(sim, job).endswith("canceled: odd")
    assert sim.cloud.begun == [name]
    assert not sim.records.unreadable
    assert not [key for key in sim.lead.disk.records if key.startswith("job/")]


def test_a_job_that_is_gone_is_no_job_of_one_that_is_lost(sim):
    job = running(sim)
    name = sim.burst.id
    sim.lead.disk.records[f"burst/{name}"] = "{"
    del sim.lead.jobs[job]
    sim.boot()
    sim.tick(5)
    sim.take_down(name)
    sim.until(over(sim))
    assert sim.burst.lease.isolated_job == job
    assert not sim.burst.jobs


def test_a_restart_goes_on_with_it_wherever_it_was():
    for ticks in range(1, 12):
        sim = Sim(modes=BOTH)
        sim.provider.starts_after = 1
        sim.provider.runs_for = 2
        job = submit(sim)
        sim.tick(ticks)
        knobs = sim.provider.starts_after, sim.provider.runs_for
        sim.boot()
        sim.provider.starts_after, sim.provider.runs_for = knobs
        sim.until(over(sim))
        sim.tick()
        assert len(sim.cloud.begun) == 1, sim.story()
        assert reason(sim, job).endswith("exit status 0")


def test_what_was_not_asked_for_is_quarantined_and_can_be_taken_down(sim):
    sim.lead.deaf = True
    job = submit(sim)
    sim.tick(2)
    sim.provider.provision(spec_of(sim))
    sim.until(lambda: sim.burst.quarantined)
    sim.lead.deaf = False
    sim.tick(3)
    assert sim.decision(job).reason is Reason.ISOLATED_QUARANTINED
    sim.take_down(sim.burst.id)
    sim.until(over(sim))
    sim.tick()
    assert reason(sim, job).endswith("canceled: odd")
    assert len(sim.bursts) == 1


def test_it_is_found_by_its_job(sim):
    job = submit(sim)
    sim.until(over(sim))
    records = sim.records
    assert find_isolated(records, format_f58(job)) == sim.burst
    assert find_isolated(records, "!") is None
    sim.run_job(whole(3), preferences=BurstPreferences(mode="joined"))
    assert find_isolated(sim.records, sim.bursts[-1].id) is None


def test_a_jobspec_that_cannot_be_read_begins_nothing(sim):
    def gone(job):
        raise LeadError("no such job")

    sim.lead.jobspec = gone
    submit(sim)
    sim.tick(5)
    assert sim.state() is State.PROVISION
    assert sim.cloud.begun == []


Told, Own, Seen = ProviderPhase, InstancePhase, Observation
TURNS = [
    (State.NEW, Told.UNREAD, Own.UNREAD, Seen.WAIT),
    (State.NEW, Told.RUNNING, Own.STARTING, None),
    (State.PROVISION, Told.PENDING, Own.STARTING, Seen.WAIT),
    (State.PROVISION, Told.PENDING, Own.ONLINE, Seen.STARTED),
    (State.PROVISION, Told.RUNNING, Own.STARTING, Seen.STARTED),
    (State.PROVISION, Told.FAILED, Own.FINISHED, Seen.FINISHED),
    (State.PROVISION, Told.UNREAD, Own.FINISHED, Seen.FINISHED),
    (State.PROVISION, Told.UNREAD, Own.ONLINE, Seen.STARTED),
    (State.PROVISION, Told.UNREAD, Own.STARTING, Seen.WAIT),
    (State.PROVISION, Told.ABSENT, Own.UNREAD, Seen.VANISHED),
    (State.JOIN, Told.RUNNING, Own.STARTING, Seen.WAIT),
    (State.JOIN, Told.RUNNING, Own.ONLINE, Seen.ONLINE),
    (State.JOIN, Told.ENDING, Own.ONLINE, Seen.ENDED),
    (State.ONLINE, Told.PENDING, Own.STARTING, Seen.WAIT),
    (State.ONLINE, Told.RUNNING, Own.ONLINE, Seen.WAIT),
    (State.ONLINE, Told.FAILED, Own.STARTING, Seen.BROKE),
    (State.ONLINE, Told.RUNNING, Own.FINISHED, Seen.FINISHED),
    (State.REAP, Told.FAILED, Own.FINISHED, Seen.WAIT),
    (State.INACTIVE, Told.ABSENT, Own.UNREAD, Seen.WAIT),
]


@pytest.mark.parametrize(("state", "word", "far", "what"), TURNS)
def test_what_the_facts_say(state, word, far, what):
    assert observation.look_up(state, word, far) is what


def test_an_event_without_a_status_quarantines():
    alone = Isolated(kind="job", job=JobId(1))
    lease = but(LEASE, slot="", ranks=(), isolated=alone)
    burst = lifecycle.begin(lease, {JobId(1): T0}, T0)
    burst = lifecycle.apply(burst, Event(T0, "provision-start", {}))
    assert lifecycle.apply(burst, Event(T0, "finish", {})).quarantined
