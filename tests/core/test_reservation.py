# SPDX-License-Identifier: MIT
"""The first job that waits for busy slots gets them, whatever else is submitted."""

import json
import re

import pytest

from burst.core.burst_story import assigned_jobs
from burst.model.burst import State
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from tests.builders import LENT, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

HOUR = 3600.0


def sim(**tables):
    s = Sim(deadlines={"idle": "1m", **tables.pop("deadlines", {})}, **tables)
    s.tick(2)
    return s


def running(s, nodes, **changes):
    job = s.submit_lent(nodes, **changes)
    s.until(lambda: job in s.lead.running())
    return job


def test_a_job_that_needs_both_slots_runs_while_small_ones_keep_coming():
    s = sim()
    first = running(s, 1)
    big = s.submit_lent(8)
    since: dict[JobId, int] = {}
    for minute in range(24 * 60):
        s.submit_lent(1)
        s.tick(seconds=60)
        assert minute < 30
        if big in s.lead.running():
            break
        for job in s.lead.running():
            if minute - since.setdefault(job, minute) >= 3:
                s.lead.finish(job)
    assert big in s.lead.running()
    assert first < big
    # Those that came later are served once it is done.
    s.lead.finish(big)
    s.until(lambda: len(s.lead.running()) >= 4)


def test_jobs_behind_get_idle_nodes_for_a_while_and_no_longer():
    """As many as the first waits for, where nobody knows for how long it waits."""
    s = sim(deadlines={"idle": "1h"})
    running(s, 1)
    other = running(s, 7)
    s.lead.finish(other)
    s.tick(2)
    big = s.submit_lent(8)
    s.tick(2)
    overtaken = []
    for _ in range(6):
        small = s.submit_lent(2)
        s.tick(3)
        if small in s.lead.running():
            overtaken.append(small)
            s.lead.finish(small)
        s.tick(2)
    assert len(overtaken) == 4
    # Not counted are those that end before the first is given up.
    brief = s.submit_lent(2, duration=HOUR)
    s.tick(5)
    assert brief in s.lead.running()
    assert s.decision(big).reason is Reason.RESERVED


def test_those_behind_are_served_once_its_user_holds_the_first():
    s = sim()
    running(s, 1)
    big = s.lead.submit(whole(8, constraint=LENT))
    s.until(lambda: s.lead.jobs[big].urgency == 0)
    small = s.submit_lent(4)
    s.tick(5)
    assert not s.lead.jobs[small].ranks
    s.lead.change(big, urgency=5)
    s.tick()
    s.lead.change(big, urgency=0)
    s.until(lambda: small in s.lead.running(), ticks=20)


def one_slot(**tables):
    """One slot of four nodes."""
    lead = FakeLead(known=identity("lead-[0-1],burst-0-[0-3]"))
    deadlines = {"idle": "5s", "reap": "1m"}
    return Sim.at_rest(lead, deadlines=deadlines, **tables)


def for_the_whole_slot(s):
    """Submit a job that waits for the whole slot."""
    wish = BurstPreferences(urgency=16, where="together")
    big = s.lead.submit(
        whole(4, constraint=LENT), urgency=0, preferences=wish, duration=60.0
    )
    s.tick(3)
    assert s.decision(big).reason is Reason.RESERVED
    return big


def test_a_standing_burst_in_the_way_of_a_job_keeps_nothing_from_those_behind():
    """The minimum keeps it, so nobody knows when the job can have its ranks."""
    providers = {"local": {"type": "fake", "standing": [{"nodes": 1}]}}
    s = one_slot(providers=providers)
    s.until(s.in_state(State.ONLINE))
    big = for_the_whole_slot(s)
    assert "at an unknown time" in s.decision(big).text()
    small = {s.submit_lent(1, duration=20.0, userid=200 + n) for n in range(3)}
    s.until(lambda: small <= set(s.lead.running()))


def standing_two(hosts, **tables):
    """Two standing nodes."""
    lead = FakeLead(known=identity(f"lead-[0-1],{hosts}"))
    providers = {"local": {"type": "fake", "standing": [{"nodes": 2}]}}
    deadlines = {"idle": "5m"}
    s = Sim.at_rest(lead, providers=providers, deadlines=deadlines, **tables)
    s.until(s.in_state(State.ONLINE))
    return s


@pytest.mark.parametrize("limits", [{}, {"max_nodes": 2}])
@pytest.mark.parametrize("spread", [True, False])
def test_busy_nodes_of_a_standing_burst_are_kept_for_a_job_that_can_join_it(
    spread, limits
):
    s = standing_two("burst-0-[0-1]", limits=limits, plan={"spread": spread})
    running(s, 1, duration=30.0, userid=1)
    big = s.submit_lent(2, duration=60.0)
    s.tick(3)
    told = s.decision(big).text()
    assert re.match(r"gets 2 nodes of .* about \d.*, when burst-0-\w+ ends", told)
    small_jobs(s, 100)
    assert any(big in burst.jobs for burst in s.bursts), s.decision(big).text()


@pytest.mark.parametrize("limits", [{}, {"max_nodes": 4}])
def test_idle_nodes_of_a_standing_burst_are_kept_with_others_that_a_job_needs(limits):
    s = standing_two("burst-0-[0-1],burst-1-[0-1]", limits=limits)
    first = running(s, 2, duration=20.0)
    running(s, 2, duration=60.0, userid=1)
    s.lead.finish(first)
    s.tick(2)
    big = s.submit_lent(4, duration=60.0)
    s.tick(3)
    assert "when burst-1-" in s.decision(big).text()
    small_jobs(s, 150)
    assert sum(big in burst.jobs for burst in s.bursts) == 2, s.decision(big).text()


@pytest.mark.parametrize(
    ("hosts", "limits", "constraint"),
    [
        ("burst-0-[0-1],burst-1-[0-3]", {"max_nodes": 4}, "burst-1-[0-3]"),
        ("burst-0-[0-3]", {"max_bursts": 1}, "burst-0-[0-3]"),
    ],
    ids=["elsewhere", "one burst"],
)
def test_nodes_that_stay_are_kept_for_no_job_whose_limit_they_take(
    hosts, limits, constraint
):
    """It cannot have its nodes beside them, so others may."""
    s = standing_two(hosts, limits=limits)
    text = json.dumps({"hostlist": [constraint]})
    s.lead.submit(whole(4, constraint=text), duration=60.0)
    s.tick(3)
    small = [s.submit_lent(1, userid=1, duration=20.0) for _ in range(2)]
    s.until(lambda: set(small) <= set(s.lead.running()))


def test_a_burst_whose_deletion_hangs_keeps_nothing_from_those_behind():
    s = one_slot()
    first = running(s, 1, duration=20.0)
    s.provider.ends_after = 10**9
    s.lead.finish(first)
    s.until(s.in_state(State.REAP))
    for_the_whole_slot(s)
    small = {s.submit_lent(1, duration=20.0, userid=200 + n) for n in range(3)}
    s.tick(30)
    assert not s.lead.running(), "it may end soon"
    s.until(lambda: small <= set(s.lead.running()))
    assert s.bursts[0].state is State.REAP


def small_jobs(s, seconds):
    """Small jobs keep coming for so long, and end after half a minute or more."""
    for second in range(seconds):
        ours = [job for job in s.lead.jobs.values() if job.userid == 1]
        ended = [j for j in ours if j.t_start and s.now - j.t_start >= j.duration - 1]
        for job in {j.id for j in ended} & set(s.lead.running()):
            s.lead.finish(job)
        if sum(not job.t_start for job in ours) < 2:
            s.submit_lent(1, userid=1, duration=30.0 + second % 23)
        s.tick()


@pytest.mark.parametrize("mode", ["joined", "isolated"])
def test_what_limits_allow_later_is_kept_for_a_burst_of_either_mode(mode):
    s = sim(
        modes=("joined", "isolated"), limits={"max_nodes": 4}, deadlines={"idle": "1s"}
    )
    small_jobs(s, 20)
    big = s.lead.submit(
        whole(4, constraint=LENT if mode == "joined" else ""),
        urgency=0,
        preferences=BurstPreferences(mode=mode, urgency=16),
        duration=60.0,
    )
    small_jobs(s, 2)
    told = s.decision(big)
    assert told.reason is Reason.RESERVED
    words = "; kept for it: so much of the limits"
    assert told.text().endswith(words) is (mode == "isolated")
    small_jobs(s, 100)
    assert any(big in assigned_jobs(burst) for burst in s.bursts)
