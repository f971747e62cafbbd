# SPDX-License-Identifier: MIT
"""Nodes that are paid for do not wait for jobs that could not use them."""

import pytest

from burst.model.burst import State
from burst.model.hold import HoldState
from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.builders import LENT, NODE, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

OWN = '{"properties":["local"]}'


def released(**tables):
    """A job that is released to a burst, and that Flux does not start."""
    s = Sim(**tables)
    s.lead.schedule = lambda: None  # type: ignore[method-assign]
    return s, s.lead.submit(whole(4))


def put_ahead(**tables):
    """One that has been put ahead of others."""
    s, job = released(**tables)
    s.until(lambda: s.lead.jobs[job].urgency == 31)
    return s, job


def behind_another(**tables):
    """A burst job behind one for own nodes, which are busy."""
    s = Sim(**tables)
    busy = s.lead.submit(whole(2))
    s.tick(2)
    assert s.lead.running() == [busy]
    ahead = s.lead.submit(whole(2, constraint=OWN))
    job = s.lead.submit(whole(4))
    return s, busy, ahead, job


def hold_of(s, job):
    return s.records.holds[job]


def urgency(s, job):
    return s.lead.jobs[job].urgency


def test_a_job_starts_on_its_nodes_although_another_waits_ahead_of_it():
    s, busy, ahead, job = behind_another()
    s.until(s.in_state(State.ONLINE))
    s.until(lambda: job in s.lead.running(), ticks=5)

    assert s.lead.jobs[job].ranks == s.burst.expected
    assert s.names().count("job-release") == 1
    s.lead.finish(busy)
    s.tick()
    assert ahead in s.lead.running()


@pytest.mark.parametrize(
    ("intake", "submitted", "shown"),
    [
        ({}, 16, 31),
        ({}, 31, 31),
        # In this mode no urgency is changed.
        ({"mode": "scheduler"}, 16, 16),
    ],
)
def test_a_released_job_is_put_first_in_the_queue(intake, submitted, shown):
    s = Sim(intake=intake)
    s.lead.schedule = lambda: None  # type: ignore[method-assign]
    job = s.lead.submit(whole(4), urgency=submitted)
    s.until(s.in_state(State.ONLINE))
    s.tick(6)
    assert urgency(s, job) == shown


def test_in_mode_queue_a_moved_job_starts_ahead_of_others_too():
    s = Sim(intake={"mode": "queue"})
    s.lead.submit(whole(2))
    s.tick(2)
    s.lead.submit(whole(2, constraint=OWN))
    job = s.run_job(whole(4), queue="burst")
    assert urgency(s, job) == 31


def test_what_does_not_start_although_it_is_first_blocks_nobody():
    s, job = put_ahead()
    s.tick(12)
    assert urgency(s, job) == 16
    s.tick(40)
    assert urgency(s, job) == 16
    s.until(lambda: s.lead.jobs[job].urgency == 31, ticks=30)
    assert hold_of(s, job).state is HoldState.RELEASED


def test_what_takes_its_nodes_takes_its_place_ahead_too():
    s, _, _, job = behind_another()
    schedule, s.lead.schedule = s.lead.schedule, lambda: None
    s.until(lambda: s.lead.jobs[job].urgency == 31)
    other = s.lead.submit(whole(2))
    ranks = frozenset(sorted(s.burst.expected)[:2])
    s.lead.change(other, state=JobState.RUN, ranks=ranks, ran_on=ranks)
    s.tick(5)
    assert urgency(s, job) == 16

    s.lead.finish(other)
    s.lead.schedule = schedule
    s.until(lambda: job in s.lead.running(), ticks=70)


def test_a_job_does_not_go_ahead_for_nodes_that_its_constraint_excludes():
    """Other nodes of its burst are free; it would block the queue from the front."""
    s = Sim(deadlines={"release": "10m", "idle": "1h"})
    first = s.run_job(whole(4))
    s.lead.finish(first)
    s.tick()
    s.lead.schedule = lambda: None  # type: ignore[method-assign]
    job = s.lead.submit(whole(1, constraint='{"hostlist":["burst-0-0"]}'))
    s.until(lambda: s.names().count("job-release") == 2)
    other = s.lead.submit(whole(1), duration=300.0)
    ranks = frozenset({s.lead.known.hosts.index("burst-0-0")})
    fields = {"state": JobState.RUN, "ranks": ranks, "ran_on": ranks}
    s.lead.change(other, **fields, t_start=s.now)
    s.tick()
    for _ in range(20):
        s.tick()
        assert urgency(s, job) == 16
    assert s.decision(job).reason is Reason.NODES_TAKEN


def test_own_nodes_that_another_waits_for_are_not_taken():
    """Flux would give it an own node that is free beside lent ones."""
    shapes = (NODE,) * 10
    s = Sim(lead=FakeLead(identity(shapes=shapes)))
    busy = s.lead.submit(whole(1))
    s.tick(2)
    s.lead.submit(whole(2, constraint=OWN))
    job = s.lead.submit(whole(4))
    s.until(s.in_state(State.ONLINE))
    s.tick(6)
    assert urgency(s, job) == 16
    assert s.lead.running() == [busy]


def test_of_the_jobs_of_one_burst_one_is_ahead_at_a_time():
    s = Sim()
    s.lead.submit(whole(2))
    s.tick(2)
    s.lead.submit(whole(2, constraint=OWN))
    first, second = (s.lead.submit(whole(2, constraint=LENT)) for _ in range(2))
    s.lead.schedule, schedule = (lambda: None), s.lead.schedule  # type: ignore[method-assign]
    s.until(lambda: 31 in (urgency(s, first), urgency(s, second)))
    assert s.burst.jobs == {first, second}
    s.tick(3)
    assert [urgency(s, job) for job in (first, second)] == [31, 16]
    s.lead.schedule = schedule  # type: ignore[method-assign]
    s.until(lambda: first in s.lead.running())
    s.lead.finish(first)
    s.until(lambda: second in s.lead.running())


@pytest.mark.parametrize("given", [8, 20])
def test_the_urgency_that_others_give_it_stays(given):
    s, job = put_ahead()
    s.lead.change(job, urgency=given)
    s.tick(16, seconds=5.0)
    assert urgency(s, job) == given
    assert hold_of(s, job).by_user


def test_a_request_that_was_lost_is_made_again():
    s, job = put_ahead()
    s.tick(9)
    s.lead.deaf = True
    s.until(lambda: not hold_of(s, job).is_raised)
    s.lead.deaf = False
    s.tick(4)
    assert urgency(s, job) == 16
    assert not hold_of(s, job).by_user
