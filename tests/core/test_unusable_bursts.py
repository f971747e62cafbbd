# SPDX-License-Identifier: MIT
"""Bursts that fail soon after they are online set their offer aside, two in a row."""

import pytest

from burst.model.burst import State
from burst.model.reason import Reason
from tests.builders import LENT, whole
from tests.sim import Sim

COOLDOWN = 100.0
TABLES = {
    "deadlines": {"idle": "1h", "rejoin": "20s", "join": "30s", "reap": "30s"},
    "limits": {"cooldown": "100s"},
}


@pytest.fixture
def s():
    return Sim(**TABLES)


def come_online(s):
    """Return a burst that is online, and whose job has not begun yet."""
    job = s.lead.submit(whole(2, constraint=LENT))
    count = len(s.bursts)
    s.until(lambda: len(s.bursts) > count and bool(s.lead.jobs[job].ranks))
    s.lead.change(job, t_start=0.0)
    return s.bursts[-1], job


def failures(s):
    rows = s.records.health["local"].rows if s.records.health else {}
    return rows["unusable/nodes"].failures if "unusable/nodes" in rows else 0


def fail(s, burst, job):
    """The last follower of a burst dies, and so the burst ends."""
    its = next(each for key, each in s.cloud.bursts.items() if key[2] == burst.id)
    its.failed = {burst.lease.hosts[-1]: "its host died"}
    s.lead.lose(burst.lease.ranks[-1])
    s.until(lambda: not s.records.bursts[burst.id].live)
    s.lead.finish(job)


def test_no_third_burst_is_made_after_two_and_the_reason_says_why(s):
    for count in (1, 2):
        fail(s, *come_online(s))
        assert failures(s) == count
    job = s.lead.submit(whole(2, constraint=LENT))
    s.tick(20)
    assert len(s.bursts) == 2
    (refusal,) = s.decision(job).refusals
    assert refusal.reason is Reason.OFFER_UNUSABLE
    text = "its last 2 bursts could not run jobs: its host died; set aside until"
    assert text in refusal.text()
    s.until(lambda: len(s.bursts) > 2, ticks=120)


@pytest.mark.parametrize("seconds", [COOLDOWN - 10, COOLDOWN + 10])
def test_only_what_fails_within_the_cooldown_counts(s, seconds):
    burst, job = come_online(s)
    s.tick(10, seconds=seconds / 10)
    fail(s, burst, job)
    assert failures(s) == (seconds < COOLDOWN)


def test_a_burst_that_lost_its_ranks_counts():
    provider = {"type": "fake", "standing": [{"nodes": 2}]}
    s = Sim(**TABLES, providers={"local": provider})
    s.until(s.in_state(State.ONLINE))
    s.tick()
    s.joins = False
    s.lead.lose(s.burst.lease.ranks[0])
    s.until(s.in_state(State.REAP), ticks=200)
    assert s.burst.exception == "lost"
    assert failures(s) == 1


def test_a_job_that_began_since_the_last_tick_shows_that_it_can_run_jobs(s):
    burst, job = come_online(s)
    s.lead.change(job, t_start=s.now)
    fail(s, burst, job)
    assert failures(s) == 0


def test_bursts_that_were_made_before_the_first_failed_count_as_one(s):
    made = [come_online(s) for _ in range(2)]
    for burst, job in made:
        fail(s, burst, job)
    assert failures(s) == 1


def test_a_burst_that_is_canceled_does_not_count(s):
    burst, job = come_online(s)
    s.take_down(burst.id)
    s.lead.finish(job)
    s.until(s.in_state(State.INACTIVE))
    assert failures(s) == 0
