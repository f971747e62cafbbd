# SPDX-License-Identifier: MIT
"""What is not bought as it would pass a budget, and what a job is told."""

import datetime

import pytest

from burst.core import burst_requests
from burst.errors import BurstError
from burst.model.burst import State
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from tests.builders import whole
from tests.core.money.money_sim import BOUND, refusal, resize, sim, submit, used


def test_a_job_that_would_pass_it_waits_and_is_told_what_is_left_and_until_when():
    its = sim(2 * BOUND)
    submit(its)
    its.until(its.in_state(State.ONLINE))
    assert used(its) == BOUND + 100
    job = submit(its, userid=2)
    its.tick(5)
    assert len(its.bursts) == 1
    decision = its.decision(job)
    assert decision.reason is Reason.TURNED_DOWN
    assert refusal(its, job).reason is Reason.OVER_BUDGET
    text = refusal(its, job).text()
    assert text.startswith(
        "budget everything, per month: 200.00 of 600.00 is left, and 400.00 would be"
        " reserved; its next period begins on 1970-02-01 "
    )


def test_a_job_that_no_budget_of_its_size_allows_is_told_what_to_change():
    its = sim(BOUND + 99)
    job = submit(its)
    its.tick(5)
    assert its.bursts == []
    assert its.decision(job).reason is Reason.TURNED_DOWN
    assert refusal(its, job).text() == (
        "budget everything, per month: its limit is 399.00, and 400.00 would be"
        " reserved for 1 node over 6.67m:"
        " provision and join 2m, Flux's start 1m, the job's time limit 1.67m, idle 1m,"
        " reap 1m; the longest part is [providers.NAME] provision and [deadlines] join"
    )
    assert refusal(its, job).next_step() == (
        "its user submits it with a time limit (-t), a shorter one, or for fewer nodes;"
        " or an administrator raises the limit under [[budget]]"
    )
    assert refusal(its, job).guests_text() == (
        "400.00 would be reserved, and the limit of a budget is lower"
    )


def test_where_a_whole_lease_is_reserved_a_shorter_job_costs_no_less():
    its = sim(400)
    its.tables["deadlines"] = {"lease": "1h"}
    its.boot()
    job = submit(its, duration=1.0)
    its.tick(4)
    found = refusal(its, job)
    assert found.reason is Reason.BUDGET_LEASE
    assert "lease 1h" in found.text()
    assert "-t" not in found.next_step()
    assert "shortens [deadlines] lease" in found.next_step()


def test_it_is_bought_once_a_new_day_begins():
    its = sim(BOUND + 100, per="day")
    its.now = 24 * 3600.0 * 12 - 200
    first = submit(its)
    its.until(its.in_state(State.ONLINE))
    second = submit(its, userid=2)
    its.tick()
    assert refusal(its, second).reason is Reason.OVER_BUDGET
    its.lead.finish(first)
    its.until(lambda: its.bursts[0].state is State.INACTIVE, ticks=200)
    its.until(lambda: len(its.bursts) == 2, ticks=200)


def test_a_burst_of_a_plan_grows_within_the_budget():
    its = sim(3 * (BOUND + 100))
    for _ in range(4):
        submit(its, userid=1)
    its.until(lambda: bool(its.bursts))
    assert its.burst.lease.nodes == 3
    assert used(its) <= 3 * (BOUND + 100)


def test_a_job_that_runs_longer_joins_a_burst_only_within_the_budget():
    its = sim(2 * (BOUND + 100) + 10)
    submit(its, nodes=2, duration=100.0, userid=1)
    late = submit(its, nodes=1, duration=3000.0, userid=1)
    its.until(lambda: bool(its.bursts))
    assert its.burst.lease.nodes == 2
    assert refusal(its, late).reason is Reason.BUDGET_SMALL


@pytest.mark.parametrize(("duration", "reused"), [(100.0, True), (3000.0, False)])
def test_a_live_burst_is_kept_for_a_further_job_only_within_the_budget(
    duration, reused
):
    its = sim(BOUND + 100 + 400)
    first = submit(its)
    its.until(its.in_state(State.ONLINE))
    its.tick(30)
    # Flux is slower than the daemon here.
    second = submit(its, duration=duration, urgency=0)
    its.lead.finish(first)
    its.lead.change(second, urgency=16, held_at_submit=False)
    its.engine.tick(its.now + 0.5)
    assert (second in its.burst.jobs) is reused
    assert used(its) <= BOUND + 100 + 400


def test_a_job_joins_a_burst_that_grows_only_within_the_budget():
    """Its money is reserved for the time that the further nodes may take, too."""
    limit = 3 * (BOUND + 50)
    its = sim(limit)
    its.tables["limits"] = {"max_bursts": 1}
    its.boot()
    its.tick(2)
    its.request(burst_requests.request_nodes(1))
    its.until(its.in_state(State.ONLINE))
    its.cloud.stalled = True
    resize(its, 3)
    assert its.burst.coming
    job = its.submit_lent(1, duration=100.0)
    its.tick(5)
    assert used(its) <= limit
    assert not its.burst.jobs
    # A new burst is over the limit, too, but that may pass sooner.
    assert refusal(its, job).reason is Reason.OVER_BUDGET


def test_an_isolated_burst_is_bought_within_the_budget():
    alone = BurstPreferences(mode="isolated", wait=0)
    its = sim(3 * (BOUND + 100), modes=("joined", "isolated"))
    first = its.lead.submit(whole(3), duration=100.0, preferences=alone, userid=1)
    second = its.lead.submit(whole(3), duration=100.0, preferences=alone, userid=1)
    its.tick(4)
    assert its.burst.lease.isolated_job == first
    assert refusal(its, second).reason is Reason.OVER_BUDGET
    assert used(its) == 3 * (BOUND + 100)


def test_after_its_last_day_the_budget_says_so():
    its = sim(10_000, until=datetime.date(1970, 1, 2))
    job = submit(its)
    its.tick(4)
    assert refusal(its, job).text() == (
        "budget everything, per month: its last day was 1970-01-02, so nothing is"
        " bought"
    )


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"limit": 0}, Reason.BUDGET_SMALL),
        ({"limit": 1e6, "until": datetime.date(1960, 1, 1)}, Reason.BUDGET_OVER),
    ],
)
def test_a_budget_that_is_over_or_0_buys_nothing_and_ends_nothing(budget, reason):
    its = sim(1e6)
    running = submit(its, nodes=4)
    its.until(its.in_state(State.ONLINE))
    its.tables["budget"] = [budget]
    its.boot()
    other = submit(its, userid=2)
    its.tick(30)
    assert refusal(its, other).reason is reason
    assert its.lead.running() == [running]
    assert [burst.state for burst in its.bursts] == [State.ONLINE]
    (state,) = its.engine.snapshot.settings.budget
    assert state.limit == budget["limit"]


def test_what_cannot_be_read_keeps_everything_from_being_bought():
    its = sim(10_000)
    its.lead.disk.records["ledger/1970-01-12"] = "{"
    its.boot()
    job = submit(its)
    its.tick(4)
    assert refusal(its, job).text() == (
        "budget everything, per month: record ledger/1970-01-12 cannot be read, so"
        " nothing is bought"
    )


def unbooked():
    """A burst that is idle, and of which nobody knows what is reserved for it."""
    its = sim(1e6)
    its.tick(2)
    its.request(burst_requests.request_nodes(1))
    its.until(its.in_state(State.ONLINE))
    its.lead.disk.records[f"entry/{its.burst.id}"] = "{"
    its.boot()
    its.tick(2)
    return its


def test_a_burst_whose_money_record_cannot_be_read_gets_no_job():
    its = unbooked()
    job = its.submit_lent(1, duration=100.0)
    its.tick(2)
    assert not its.burst.jobs
    assert {each.reason for each in its.decision(job).refusals} == {
        Reason.BUDGET_UNREAD
    }


def test_a_burst_whose_money_record_cannot_be_read_does_not_grow():
    its = unbooked()
    why = f"record entry/{its.burst.id} cannot be read, so nothing is bought"
    with pytest.raises(BurstError, match=f"budget everything, per month: {why}"):
        resize(its, 3)
    assert its.burst.lease.nodes == 1


def test_a_burst_of_before_there_was_a_ledger_gets_jobs_at_once():
    its = unbooked()
    del its.lead.disk.records[f"entry/{its.burst.id}"]
    its.boot()
    its.submit_lent(1, duration=100.0)
    its.tick()
    assert its.burst.jobs
    assert used(its) == 180 + 100


@pytest.mark.parametrize(("limit", "bought"), [(179.0, False), (180.0, True)])
def test_nodes_requested_ahead_of_jobs_are_bought_within_the_budget(limit, bought):
    its = sim(limit + 60)
    its.tick(2)
    answer = its.request(burst_requests.request_nodes(1))
    assert bool(its.bursts) is bought
    assert bool(answer.refusals) is not bought
