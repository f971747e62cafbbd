# SPDX-License-Identifier: MIT
"""A trace, run again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_replay.policies import AT_ONCE, NEVER, Policy, worth_policy
from burst_replay.read_trace import read_trace
from burst_replay.report import policy_result
from burst_replay.simulator import ReplayOutcome, replay
from burst_replay.site import Site
from burst_replay.trace import Machine, Trace, TraceJob
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.model.scheduler import Order
from tests.plugins.replay.rule import rules_of, site_of, with_offer

HPC2N = Path(__file__).parents[3] / "examples" / "hpc2n.swf.gz"
HOUR = 3600.0
TEN = Machine(nodes=5, cores=2)
KEPT = {"idle": "1h"}


def job(submit: float, cores: int, hours: float, limit: float = 0.0) -> TraceJob:
    """A job; all in hours."""
    run_time = hours * HOUR
    return TraceJob(submit * HOUR, run_time, cores, limit * HOUR or run_time)


def run(
    jobs: list[TraceJob],
    policy: Policy = NEVER,
    order: Order = Order.EASY,
    **tables: Any,
) -> ReplayOutcome:
    """Ten cores in five nodes; boot takes six minutes, tear-down three."""
    site = site_of(TEN, order, 0.1 * HOUR, 0.05 * HOUR, **tables)
    return replay(Trace("test", tuple(jobs)), site, policy)


def bought(outcome: ReplayOutcome) -> list[float]:
    """Node-hours of work, idle, boot and tear-down."""
    spent = outcome.spent
    return [
        each / HOUR for each in (spent.work, spent.idle, spent.boot, spent.teardown)
    ]


def hours(outcome: ReplayOutcome) -> list[float]:
    """The waits in hours."""
    return [round(wait / HOUR, 3) for wait in outcome.waits]


def test_backfill_on_own_nodes() -> None:
    jobs = [
        job(0, 8, 4, limit=6),
        job(0.5, 10, 1),  # waits for the first
        job(1, 2, 3.5, limit=4),  # ends before that could start, by the limits
        job(1, 1, 9),
        job(1.5, 1, 1),  # at 4:00 it ends before the third may, by its limit
    ]
    assert hours(run(jobs)) == [0, 4.5, 0, 5.0, 2.5]
    assert hours(run(jobs, order=Order.FIFO)) == [0, 3.5, 4.0, 4.0, 3.5]


def test_conservative_backfill_delays_no_job() -> None:
    jobs = [job(0, 6, 4), job(0, 8, 1), job(0, 10, 1), job(0, 2, 10), job(0, 1, 1)]
    # The fourth starts before the first that waits, and the third waits for it.
    assert hours(run(jobs)) == [0, 4, 10, 0, 0]
    assert hours(run(jobs, order=Order.CONSERVATIVE)) == [0, 4, 5, 6, 0]
    assert hours(run(jobs, order=Order.FIFO)) == [0, 4, 5, 6, 6]


def test_at_once_buys_nodes_for_whatever_must_wait() -> None:
    found = run([job(0, 10, 4), job(1, 3, 2)], AT_ONCE)
    assert hours(found) == [0, 0.1]
    # Two nodes of two cores.
    assert found.bursts == 1
    assert found.own_work == 20.0
    assert bought(found) == pytest.approx([4.0, 0.0, 0.2, 0.1])


def test_a_worth_is_asked_for() -> None:
    # Waits three hours, saves 2.9; buys 2 * 2.15 node-hours.
    jobs = [job(0, 10, 4), job(1, 3, 2)]
    assert hours(run(jobs, worth_policy(0.67))) == [0, 0.1]
    assert hours(run(jobs, worth_policy(0.68))) == [0, 3.0]


def test_it_is_judged_again_when_the_job_before_it_ends() -> None:
    jobs = [
        job(0, 10, 1, limit=1),
        job(0.25, 10, 0.5, limit=9),  # of it nothing is known: nine hours
        job(0.5, 2, 1),
    ]
    # At first it is expected at 10:00, which is worth a burst.
    assert hours(run(jobs, worth_policy(5))) == [0, 0.75, 0.1]
    assert hours(run(jobs, worth_policy(20))) == [0, 0.75, 1.0]


def test_nodes_that_become_idle_serve_another_job_where_that_pays() -> None:
    jobs = [job(0, 10, 8), job(0, 4, 1), job(0, 2, 4), job(0.5, 3, 1)]
    jobs[1] = msgspec.structs.replace(jobs[1], name="soon")

    # At once for the second job, then a worth.
    soon = {"match": {"name": "soon"}, "worth": 0.0}
    found = run(jobs, rules_of(soon, {"worth": 3.3}))
    # A burst of its own would save 7.4 hours for 2.3 node-hours. The third saves seven
    # for four hours of two nodes.
    assert hours(found) == [0, 0.1, 8.0, 0.6]
    assert found.bursts == 1
    assert bought(found)[:2] == pytest.approx([2 * 1 + 2 * 1, 0.0])


def test_idle_nodes_serve_other_users_only_where_they_may_share() -> None:
    jobs = [job(0, 10, 8), job(0, 2, 1), job(0.5, 2, 1)]
    jobs[2] = msgspec.structs.replace(jobs[2], userid=7)
    alone = run(jobs, AT_ONCE, deadlines=KEPT)
    jobs.append(job(1.5, 2, 1))
    jobs[3] = msgspec.structs.replace(jobs[3], userid=9)
    assert run(jobs, AT_ONCE, deadlines=KEPT).bursts == alone.bursts + 1
    assert (
        run(jobs, AT_ONCE, deadlines=KEPT, plan={"share_users": True}).bursts
        == alone.bursts
    )


def test_without_sharing_a_burst_with_jobs_on_it_serves_no_others() -> None:
    jobs = [job(0, 10, 8), job(0, 4, 1), job(1.2, 2, 4), job(1.5, 2, 1)]
    assert run(jobs, AT_ONCE, deadlines=KEPT).bursts == 1
    assert run(jobs, AT_ONCE, deadlines=KEPT, plan={"share": False}).bursts == 2


def test_each_burst_has_the_price_and_the_time_to_boot_of_its_offer() -> None:
    # Two nodes are there later, and cost less, than one.
    site = with_offer(site_of(TEN, teardown=180.0), "dear", price=5.0, join_time=360.0)
    site = with_offer(site, "cheap", price=2.0, join_time=1080.0)
    cheap = {"match": {"nodes": "2"}, "providers": ["cheap"]}
    policy = rules_of(cheap, {"providers": ["dear"]})
    jobs = [job(0, 10, 8), job(0, 4, 1), job(0, 2, 1)]
    found = replay(Trace("test", tuple(jobs)), site, policy)
    assert hours(found) == [0, 0.3, 0.1]
    assert sum(bought(found)) == pytest.approx(2 * 1.35 + 1.15)
    result = policy_result(jobs, TEN, found)
    assert result.money == pytest.approx(2 * 2 * 1.35 + 5 * 1.15)
    parts = result.work + result.idle + result.boot + result.teardown
    assert parts == pytest.approx(result.money)


def test_those_behind_a_job_that_gets_a_burst_are_judged_without_it() -> None:
    """They are judged at once: 7.3 and 8.3 h saved for 5.75 and 8.25 node-hours."""

    patient = rules_of({"worth": 1.0, "wait": "30m"})
    found = run([job(0, 10, 8), job(0.1, 10, 1), job(0.1, 10, 1.5)], patient)
    # Without the second, the third would save 7.3 hours only.
    assert hours(found) == [0, 0.6, 7.9]
    assert hours(run([job(0, 10, 9), job(0.1, 10, 1.5)], patient)) == [0, 0.6]


def test_hours_that_begin_and_waits_that_end_in_them_are_seen() -> None:
    """Though nothing else happens then: a trace begins on Thursday at 0:00."""
    jobs = [job(0, 10, 24), job(0.5, 10, 1)]
    day = {"wait": "8h"}
    for wait, began in (("15m", 0.6), ("90m", 1.6), ("7h", 8.1)):
        night = {"match": {"hours": "1-7"}, "wait": wait}
        assert hours(run(jobs, rules_of(night, day))) == [0, began]
    weekend = {"match": {"hours": "Sa"}, "worth": 0.0}
    never = {"max_price": 0.0}
    large = [job(0, 11, 1)]
    assert hours(run(large, rules_of(weekend, never))) == [48.1]


def test_hours_that_serve_no_job_end_the_replay() -> None:
    night, day = {"match": {"hours": "1-7"}, "max_price": 0.0}, {"max_price": 0.0}
    assert hours(run([job(0, 11, 1)], rules_of(night, day))) == [math.inf]


def test_where_nothing_happens_it_is_judged_again_after_an_hour() -> None:
    jobs = [
        *(job(n, 10, 0.1, limit=20) for n in range(3)),
        job(3, 10, 20, limit=20),  # such jobs took 0.1 h
        job(3.05, 2, 1),
    ]
    # An hour after it was submitted, that one is expected to run another hour.
    assert hours(run(jobs, worth_policy(0.8))) == [0, 0, 0, 0, 1.1]
    # Or before that, with a job that is larger than the machine.
    jobs.append(job(3.9, 11, 1))
    assert hours(run(jobs, worth_policy(0.6))) == [0, 0, 0, 0, 0.95, 0.1]


def test_an_idle_burst_may_be_kept() -> None:
    jobs = [job(0, 10, 8), job(0, 2, 1), job(1.5, 2, 1)]
    dropped = run(jobs, AT_ONCE)
    kept = run(jobs, AT_ONCE, deadlines=KEPT)
    assert (hours(dropped), dropped.bursts) == ([0, 0.1, 0.1], 2)
    assert (hours(kept), kept.bursts) == ([0, 0.1, 0.0], 1)
    assert bought(kept)[1] == pytest.approx(0.4 + 1.0)


def test_what_is_larger_than_the_machine_runs_on_bought_nodes_or_never() -> None:
    jobs = [job(0, 11, 1), job(0, 10, 1)]
    assert hours(run(jobs)) == [math.inf, 0]
    assert hours(run(jobs, worth_policy(1.0))) == [0.1, 0]
    result = policy_result(jobs, TEN, run(jobs))
    assert (result.refused, result.mean_wait_s) == (1, 0.0)


def test_progress_is_told() -> None:
    told: list[int] = []
    trace = Trace("test", (job(0, 1, 1),) * 300)
    replay(trace, Site(TEN), NEVER, told.append)
    assert told == [128, 256, 300]


JOBS = st.lists(
    st.builds(
        job,
        st.integers(0, 20),
        st.integers(1, 14),
        st.sampled_from([0.5, 1.0, 3.0, 10.0]),
        st.sampled_from([10.0, 12.0]),
    ),
    max_size=30,
).map(lambda jobs: sorted(jobs, key=lambda job: job.submit))


@settings(max_examples=50)
@given(
    JOBS,
    st.sampled_from([0.0, 0.05, 0.5, 5.0, math.inf]),
    st.sampled_from(Order),
    st.sampled_from(["0s", "1h"]),
)
def test_what_is_paid_is_work_idle_boot_and_teardown(
    jobs: list[TraceJob], worth: float, order: Order, idle: str
) -> None:
    found = run(jobs, worth_policy(worth), order, deadlines={"idle": idle})
    started = [
        (job, wait)
        for job, wait in zip(jobs, found.waits, strict=True)
        if wait < math.inf
    ]
    assert all(wait >= 0 for _, wait in started)
    # No work is lost, and none is done twice.
    ran = sum(job.run_time * job.cores / 2 for job, _ in started) / HOUR
    whole = sum(job.run_time * -(-job.cores // 2) for job, _ in started) / HOUR
    work, idle_hours, boot, teardown = bought(found)
    assert ran - 1e-6 <= found.own_work + work <= whole + 1e-6
    # Each burst boots and is taken down once: 6 and 3 minutes of the same nodes.
    assert teardown * 2 == pytest.approx(boot)
    assert min(work, idle_hours, boot) >= 0
    assert (found.bursts > 0) is (sum(bought(found)) > 0)
    # In money, the parts are the total.
    result = policy_result(jobs, TEN, found)
    parts = (result.work, result.idle, result.boot, result.teardown)
    assert result.money == pytest.approx(sum(parts))
    assert result.money == pytest.approx(sum(bought(found)), abs=1e-4)
    assert result.refused == len(jobs) - len(started)


@settings(max_examples=30)
@given(JOBS)
def test_own_nodes_are_never_overcommitted(jobs: list[TraceJob]) -> None:
    found = run(jobs)
    changes = []
    for each, wait in zip(jobs, found.waits, strict=True):
        assert (wait == math.inf) is (each.cores > TEN.total)
        if wait < math.inf:
            start = each.submit + wait
            changes += [(start, each.cores), (start + each.run_time, -each.cores)]
    used = 0
    for _, change in sorted(changes):
        used += change
        assert 0 <= used <= TEN.total


def test_a_tenth_of_an_hour_for_each_node_hour_on_a_real_machine() -> None:
    trace = read_trace(HPC2N)
    assert trace.machine is not None
    site = Site(trace.machine)
    found = {
        policy.name: policy_result(
            trace.jobs, trace.machine, replay(trace, site, policy)
        )
        for policy in (NEVER, AT_ONCE, worth_policy(0.1))
    }
    never, at_once, tenth = found.values()
    assert never.mean_wait_s / 60 == pytest.approx(59, abs=0.5)
    assert at_once.mean_wait_s / 60 == pytest.approx(1.4, abs=0.05)
    assert at_once.bought_share == pytest.approx(0.23, abs=0.005)
    assert tenth.mean_wait_s <= 30 * 60
    assert tenth.bought_share <= 0.017
