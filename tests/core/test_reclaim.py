# SPDX-License-Identifier: MIT
"""Nodes that the cloud takes back are no failure of the offer or the provider."""

import pytest

from burst.core.cooldowns import pause_reclaimed
from burst.core.money.cost_report import CostReport
from burst.core.provider_health import FailureRecord, Health
from burst.model.burst import Result, State
from burst.model.lead import JobState
from burst.provider import Failure
from tests.builders import but, settings, whole
from tests.lifecycles import LEASE
from tests.sim import Sim

LIMITS = settings(limits={"cooldown": "10m"}).limits


def running(price=0.0, **tables):
    """A job runs on a burst of spot nodes."""
    sim = Sim(deadlines={"rejoin": "20s", "join": "30s"}, **tables)
    sim.fake_settings = but(sim.fake_settings, spot=True, price=price)
    sim.boot()
    sim.tick(2)
    job = sim.run_job(whole(4), userid=1)
    return sim, job


@pytest.mark.parametrize("ends", [True, False])
def test_a_reclaimed_burst_ends_as_such_and_the_next_is_made_at_once(ends):
    sim, job = running(price=3.6)
    lost = sim.burst.id
    sim.provider.reclaim(lost, ends=ends)
    sim.tick(3)
    assert sim.lead.jobs[job].result == "failed"
    again = sim.lead.submit(whole(4), userid=1)
    sim.until(lambda: sim.lead.jobs[again].state is JobState.RUN, ticks=5)
    sim.until(lambda: not sim.records.bursts[lost].live)

    burst = sim.records.bursts[lost]
    assert (burst.exception, burst.result) == ("reclaimed", Result.RECLAIMED)
    assert sim.names(burst).count("reclaimed") == 1
    assert burst.state is State.INACTIVE
    assert sim.records.health == {}
    hosts = ", ".join(burst.lease.hosts)
    word = "its node was taken back" if ends else "was preempted"
    assert sim.explained(job)["why"] == (
        f"it ended: failed; burst {lost}: the provider reclaimed {hosts} ({word})"
    )
    # What is paid is settled, and counted.
    settled = sim.records.settled[lost]
    assert settled.reclaimed
    assert settled.costs.total > 0
    (row,) = CostReport(sim.records).prices()
    price = {"offer": "local/nodes", "price": 3.6, "fee": 0.0, "from": "offer"}
    assert row == {**price, "ended": 1, "reclaimed": 1}


def test_a_job_on_other_nodes_of_the_burst_is_not_told():
    sim = Sim(deadlines={"rejoin": "20s"})
    sim.tick(2)
    submitted = [sim.lead.submit(whole(2)) for _ in range(3)]
    sim.until(lambda: len(sim.lead.running()) == 3)
    (burst,) = sim.bursts
    lent = frozenset(burst.lease.ranks)
    jobs = [job for job in submitted if sim.lead.jobs[job].ranks <= lent]
    assert len(jobs) == 2
    at = burst.lease.ranks.index(min(sim.lead.jobs[jobs[0]].ranks))
    cloud = next(iter(sim.cloud.bursts.values()))
    cloud.reclaimed.add(burst.lease.hosts[at])
    sim.tick(3)

    assert sim.lead.memos[jobs[0]]["state"] == "reclaimed"
    assert sim.lead.memos[jobs[1]].get("state") != "reclaimed"
    for job in jobs:
        sim.lead.finish(job, "failed")
    sim.tick(2)
    told = ["the provider reclaimed" in sim.explained(job)["why"] for job in jobs]
    assert told == [True, False]


def test_a_notice_that_came_to_nothing_is_forgotten():
    sim, job = running()
    cloud = next(iter(sim.cloud.bursts.values()))
    cloud.reclaimed.add(sim.burst.lease.hosts[0])
    sim.tick(3)
    cloud.reclaimed.clear()
    sim.tick(3)

    assert sim.lead.jobs[job].state is JobState.RUN
    assert not sim.burst.reclaimed
    sim.provider.fail(sim.burst.id, "crash loop")
    sim.lead.lose(sim.burst.lease.ranks[0])
    sim.tick(3)
    assert sim.burst.exception == "failed"


def test_what_is_reclaimed_and_vanishes_was_reclaimed():
    sim, _ = running()
    name = sim.burst.id
    sim.provider.reclaim(name)
    sim.tick(2)
    sim.provider.lose(name)
    sim.until(lambda: sim.bursts[0].exception != "")

    assert sim.bursts[0].exception == "reclaimed"


def test_what_is_reclaimed_as_it_comes_up_pauses_the_offer_and_is_no_failure():
    tables = {"limits": {"cooldown": "5m"}, "plan": {"spread": False}}
    sim = Sim(provision="40s", deadlines={"join": "30s"}, **tables)
    sim.joins = False
    sim.tick(2)
    large = sim.lead.submit(whole(4), userid=1)
    sim.until(sim.in_state(State.JOIN))
    sim.provider.reclaim(sim.burst.id, sim.burst.lease.hosts[:1])
    sim.until(lambda: sim.burst.exception != "", ticks=50)

    assert sim.burst.exception == "reclaimed"
    entry = sim.records.health["local"].rows["offer/nodes"]
    assert (entry.failures, entry.nodes) == (0, 4)
    sim.until(lambda: not sim.burst.live)
    sim.tick(2)
    (refusal,) = sim.decision(large).refusals
    assert refusal.text().startswith("nodes of a burst of 4 were reclaimed while it")

    small = sim.lead.submit(whole(3), userid=2)
    sim.joins = True
    sim.until(lambda: sim.lead.jobs[small].state is JobState.RUN)


@pytest.mark.parametrize("state", [State.PROVISION, State.JOIN])
def test_a_burst_of_which_the_provider_says_that_it_was_reclaimed_ends_at_once(state):
    sim = Sim(limits={"cooldown": "5m"}, plan={"spread": False})
    sim.joins = False
    sim.provider.starts_only = None if state is State.JOIN else 0
    sim.tick(2)
    sim.lead.submit(whole(4), userid=1)
    sim.until(sim.in_state(state))
    sim.tick(3)
    sim.provider.fail(sim.burst.id, "stock-out", Failure.RECLAIMED)
    sim.until(lambda: sim.burst.exception != "")

    assert sim.burst.exception == "reclaimed"
    sim.tick(20)
    assert len(sim.bursts) == 1
    entry = sim.records.health["local"].rows["offer/nodes"]
    assert entry.failures == 0


def test_an_isolated_burst_that_is_reclaimed_says_so_to_its_job():
    sim = Sim(modes=("isolated",))
    sim.tick(2)
    job = sim.lead.submit(whole(3), userid=1)
    sim.provider.ends_with = None
    sim.until(sim.in_state(State.ONLINE))
    sim.provider.reclaim(sim.burst.id, ends=True)
    sim.until(lambda: sim.lead.jobs[job].state is JobState.INACTIVE)

    assert sim.burst.result is Result.RECLAIMED
    assert sim.lead.memos[job]["state"] == "reclaimed"
    assert "reclaimed: the provider reclaimed" in sim.told(job)


def test_the_pause_of_what_was_reclaimed_does_not_grow():
    before = Health(rows={"offer/o": FailureRecord(2, 50.0, 4)})
    lease = but(LEASE, offer="o", hosts=("a", "b"))
    after = pause_reclaimed(before, lease, LIMITS, 100.0)
    assert after.rows["offer/o"] == FailureRecord(2, 700.0, 2)
    assert pause_reclaimed(after, lease, LIMITS, 100.0) == after
    larger = Health(rows={"offer/o": FailureRecord(2, 9000.0, 0)})
    assert pause_reclaimed(larger, lease, LIMITS, 100.0) == larger
