# SPDX-License-Identifier: MIT
"""After a pause or a cooldown one burst is tried; others wait until it is online."""

import pytest

from burst.core.plan.catalog import coming_bursts, running_trials
from burst.core.provider_health import FailureRecord, Health
from burst.model.burst import Burst, State
from burst.model.lead import JobState
from burst.model.reason import Reason
from tests.builders import T0, but, whole
from tests.core.plans import demand, leases, plan, reasons
from tests.lifecycles import LEASE
from tests.sim import Sim

ALONE = {"plan": {"share": False}, "limits": {"cooldown": "5m"}}


def runs(sim, job):
    return lambda: sim.lead.jobs[job].state is JobState.RUN


def coming_up_fails(**tables):
    """Two jobs wait for an offer of which one burst did not join in time."""
    sim = Sim(deadlines={"join": "30s"}, **{**ALONE, **tables})
    sim.joins = False
    sim.tick(2)
    jobs = [sim.lead.submit(whole(4), userid=1)]
    sim.until(sim.in_state(State.INACTIVE), ticks=100)
    jobs.append(sim.lead.submit(whole(4), userid=2))
    sim.tick(3)
    assert sim.live == []
    return sim, jobs


def test_a_cooldown_and_the_trial_after_it_outlive_the_daemon():
    sim, jobs = coming_up_fails()
    sim.boot()
    sim.tick(60)
    assert len(sim.bursts) == 1
    assert "set aside until" in sim.told(jobs[1])

    sim.until(lambda: len(sim.live) == 1, ticks=60, seconds=5.0)
    for _ in range(3):
        sim.boot()
        sim.tick(3)
        assert len(sim.live) == 1
    (trial,) = sim.live
    assert trial.state is State.JOIN
    waits = next(job for job in jobs if job not in trial.jobs)
    assert sim.told(waits).endswith("others wait until it is online or has failed")

    sim.joins = True
    sim.until(runs(sim, waits), ticks=30)
    assert len(sim.live) == 2
    assert sim.records.health == {}


def test_after_a_trial_that_nobody_needs_any_more_there_is_another():
    sim, jobs = coming_up_fails()
    sim.until(lambda: len(sim.live) == 1, ticks=80, seconds=5.0)
    (trial,) = sim.live
    (first,) = trial.jobs
    sim.lead.finish(first, "canceled")
    sim.tick(10)

    (another,) = sim.live
    assert another.jobs == set(jobs) - {first}


def test_a_trial_in_quarantine_keeps_no_other_burst_waiting():
    burst = Burst(lease=LEASE, state=State.JOIN)
    held = {LEASE.provider: Health(trial=True)}
    assert running_trials(held, coming_bursts([burst]), T0) == {LEASE.provider}
    lost = but(burst, quarantined="no rule")
    online = but(burst, state=State.ONLINE)
    assert coming_bursts([lost, online]) == ()


def test_isolated_bursts_are_trials_too():
    sim = Sim(modes=("isolated",), provision="30s", **ALONE)
    sim.provider.starts_only = 0
    sim.tick(2)
    for user in (1, 2):
        sim.lead.submit(whole(3), userid=user)
    sim.until(lambda: bool(sim.bursts) and not sim.live, ticks=100)
    before = len(sim.bursts)
    assert sim.records.health["local"].rows
    for user in (3, 4):
        sim.lead.submit(whole(3), userid=user)
    sim.until(lambda: bool(sim.live), ticks=200, seconds=5.0)
    sim.tick(5)
    assert len(sim.bursts) == before + 1

    sim.provider.starts_only = None
    sim.until(lambda: len(sim.bursts) > before + 1)
    assert sim.records.health == {}


def test_a_burst_of_which_a_part_is_kept_ends_the_trial():
    sim, _ = coming_up_fails(plan={"share": False, "partial": "keep"})
    sim.until(lambda: len(sim.live) == 1, ticks=80, seconds=5.0)
    sim.tick(5)
    (trial,) = sim.live
    sim.lead.online |= set(trial.lease.ranks[:2])
    sim.until(lambda: sim.live[0].state is State.ONLINE)

    assert sim.records.health == {}


def cooled(nodes):
    return {"local": Health(rows={"offer/small": FailureRecord(1, T0, nodes)})}


def trial_of(nodes):
    lease = but(LEASE, provider="local", offer="small", hosts=tuple("abcdefgh"[:nodes]))
    return [Burst(lease=lease, state=State.PROVISION)]


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_a_plan_begins_one_trial_of_an_offer(nodes):
    two = demand(1, whole(4), 1), demand(2, whole(4), 2)
    made = plan(*two, health=cooled(nodes), spread=False)

    assert leases(made) == [("burst-0", "local", 4, [1])]
    assert reasons(made, 2) == (Reason.TURNED_DOWN, [("local/small", Reason.ON_TRIAL)])
    # Of the size that failed it is one; smaller ones are made meanwhile.
    two = demand(1, whole(4), 1), demand(2, whole(1), 2)
    made = plan(*two, health=cooled(2))
    assert [nodes for _, _, nodes, _ in leases(made)] == [4, 1]


def test_a_plan_begins_one_trial_of_a_provider_that_failed():
    two = demand(1, whole(4), 1), demand(2, whole(4), 2)
    made = plan(*two, health={"local": Health(until=T0)})
    assert leases(made) == [("burst-0", "local", 4, [1])]
    assert reasons(made, 2)[1] == [("local/small", Reason.ON_TRIAL)]


def test_a_trial_that_is_under_way_is_the_only_one():
    one = demand(1, whole(4), 1)
    for nodes in (0, 1, 3):
        made = plan(one, health=cooled(nodes), coming=trial_of(3), spread=False)
        assert reasons(made, 1)[1] == [("local/small", Reason.ON_TRIAL)]
    # A burst that is smaller than what failed tries nothing.
    assert leases(plan(one, health=cooled(4), coming=trial_of(3), spread=False))
    # Others are split, as during the cooldown.
    made = plan(one, health=cooled(4), coming=trial_of(4))
    assert [nodes for _, _, nodes, _ in leases(made)] == [2, 2]


def test_a_trial_may_grow_and_no_other_burst_may_grow_to_be_one():
    jobs = demand(1, whole(3), 1), demand(2, whole(1), 1), demand(3, whole(1), 2)
    made = plan(*jobs, health=cooled(3))
    assert [jobs for _, _, _, jobs in leases(made)] == [[1, 2], [3]]
    assert leases(made)[0][2] == 4

    jobs = demand(1, whole(3), 1), demand(2, whole(2), 2), demand(3, whole(1), 2)
    made = plan(*jobs, health=cooled(3))
    assert [nodes for _, _, nodes, _ in leases(made)] == [3, 2, 1]

    # What grows to that size is the trial.
    jobs = demand(1, whole(2), 1), demand(2, whole(1), 1), demand(3, whole(3), 2)
    made = plan(*jobs, health=cooled(3), spread=False)
    assert leases(made) == [("burst-0", "local", 3, [1, 2])]
    assert reasons(made, 3)[1] == [("local/small", Reason.ON_TRIAL)]


def test_what_is_refused_in_one_slot_is_made_in_another():
    refused = FailureRecord(1, T0 + 9, why="no label")
    held = {"local": Health(rows={"spec/small/burst-0/4": refused})}
    made = plan(demand(1, whole(4)), health=held)
    assert leases(made) == [("burst-1", "local", 4, [1])]

    held = {"local": Health(rows={"spec/small//0": refused})}
    made = plan(demand(1, whole(4)), health=held)
    assert reasons(made, 1)[1] == [("local/small", Reason.SPEC_REFUSED)]
