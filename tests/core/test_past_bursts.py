# SPDX-License-Identifier: MIT
import pytest

from burst.core import lifecycle
from burst.core.money.ledger import Costs, Payer, Share
from burst.core.money.money import Money
from burst.core.past_bursts import PastBursts
from burst.core.plan.estimate import StartEstimate
from burst.core.records import Records
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.builders import T0, but, job, view, whole, world
from tests.core.money.budgets import settled_burst
from tests.core.ticks import tick_once
from tests.lifecycles import LEASE

ONE, TWO = JobId(1), JobId(2)
NOW = T0 + 500


def burst_of(*jobs, name="burst-0-aaaaaa", made=T0, userids=(100,), price=3600.0):
    lease = but(LEASE, id=BurstId(name), created=made, userids=userids, price=price)
    return lifecycle.begin(lease, dict.fromkeys(jobs, made - 5), made)


def run(burst, number, *, finished=True):
    """The burst after one of its jobs has run."""
    at = burst.lease.created
    burst = lifecycle.apply(
        burst, Event(at + 10, "job-start", {"id": format_f58(number)})
    )
    if not finished:
        return burst
    context = {"id": format_f58(number), "result": "completed"}
    return lifecycle.apply(burst, Event(at + 20, "job-finish", context))


def gone(burst):
    at = burst.lease.created
    for name, context in (
        ("provision-start", {}),
        ("exception", {"type": "failed", "note": "no route"}),
        ("reaped", {}),
    ):
        at += 1
        burst = lifecycle.apply(burst, Event(at, name, context))
    assert not burst.quarantined
    return burst


def settled(name="burst-9-zzzzzz", made=T0, userid=100, job=ONE, **changes):
    costs = Costs(work=Money(2_000_000), idle=Money(500_000))
    shares = (Share(Payer(userid), job, 1.0),)
    return settled_burst(name, made, shares=shares, costs=costs, **changes)


def past(*bursts, archived=(), since=0.0, userid=None, lead=None, **on_record):
    records = Records(bursts={burst.id: burst for burst in bursts}, **on_record)
    return PastBursts(records, world(lead), tuple(archived), since, NOW, userid)


def test_a_burst_on_record_is_told_with_its_states_and_what_was_wasted():
    burst = gone(burst_of(ONE))
    on_record = {burst.id: settled(burst.id)}

    (row,) = past(burst, settled=on_record).bursts()

    states = [state["state"] for state in row["states"]]
    assert states == ["new", "provision", "reap", "inactive"]
    assert (row["result"], row["note"]) == ("failed", "no route")
    assert (row["made"], row["ended"]) == (T0, T0 + 3)
    assert (row["cost"], row["wasted"]) == (2.5, 0.5)


def test_a_live_burst_has_no_end_and_what_it_wastes_is_not_known():
    (row,) = past(burst_of(ONE)).bursts()

    assert (row["state"], row["ended"], row["wasted"]) == ("new", None, None)


@pytest.mark.parametrize(
    ("how", "result"), [({}, None), ({"reclaimed": True}, "reclaimed")]
)
def test_of_a_burst_whose_record_is_gone_the_ledger_tells(how, result):
    (row,) = past(archived=[settled(**how)]).bursts()

    assert (row["id"], row["state"]) == ("burst-9-zzzzzz", "inactive")
    assert row["result"] == result
    assert (row["made"], row["ended"]) == (T0, T0 + 60)
    assert (row["cost"], row["wasted"], row["states"]) == (2.5, 0.5, [])


def test_none_is_told_twice_and_the_oldest_is_first():
    burst = gone(burst_of(ONE, made=T0 + 100))
    same = settled(burst.id, T0 + 100)
    older = settled(made=T0 + 50)

    found = past(burst, archived=[same, older], settled={burst.id: same})

    assert [row["id"] for row in found.bursts()] == [older.burst, burst.id]


def test_what_was_made_before_the_day_is_left_out():
    old, new = burst_of(ONE), burst_of(TWO, name="burst-1-bbbbbb", made=T0 + 100)
    found = past(old, new, archived=[settled()], since=T0 + 100)

    assert [row["id"] for row in found.bursts()] == [new.id]
    assert [row["id"] for row in found.jobs()] == [format_f58(TWO)]


def test_jobs_are_told_once_with_all_their_bursts():
    one = run(burst_of(ONE, TWO), ONE)
    two = run(burst_of(ONE, name="burst-1-bbbbbb"), ONE, finished=False)

    first, second = past(one, two, lead=view(job(1, whole(2)))).jobs()

    assert first["id"] == format_f58(ONE)
    assert first["bursts"] == [one.id, two.id]
    assert (first["submitted"], first["started"]) == (T0 - 5, T0 + 10)
    assert (first["finished"], first["result"]) == (T0 + 20, "completed")
    assert (first["userid"], second["userid"]) == (100, None)
    assert (second["started"], second["here"]) == (None, None)


@pytest.mark.parametrize("finished", [True, False])
def test_a_job_whose_first_burst_failed_is_told_by_the_one_that_it_ran_on(finished):
    failed = gone(lifecycle.expect_here(burst_of(ONE, TWO), {ONE: T0 + 99}))
    other = run(burst_of(ONE, name="burst-1-bbbbbb"), ONE, finished=finished)
    waits = burst_of(ONE, name="burst-2-cccccc")

    first, second = past(failed, other, waits).jobs()

    assert first["bursts"] == [failed.id, other.id, waits.id]
    assert (first["started"], first["here"]) == (T0 + 10, T0 + 99)
    assert (first["finished"], first["result"]) == (
        (T0 + 20, "completed") if finished else (None, "")
    )
    assert (second["bursts"], second["started"]) == ([failed.id], None)


@pytest.mark.parametrize(
    ("state", "left"),
    [(JobState.SCHED, None), (JobState.RUN, T0 + 3), (None, T0 + 3)],
)
def test_a_job_that_no_burst_ran_waits_or_has_left(state, left):
    """It was canceled, say, after its burst had failed, or runs on own nodes."""
    shown = () if state is None else (job(1, whole(2), state=state),)

    (row,) = past(gone(burst_of(ONE)), lead=view(*shown)).jobs()

    assert (row["started"], row["finished"], row["left"]) == (None, None, left)
    # Its burst may still run it, or the lead does not show whether it waits.
    assert [row["left"] for row in past(burst_of(ONE), lead=view(*shown)).jobs()] == [
        None
    ]
    assert [row["left"] for row in past(gone(burst_of(ONE))).jobs()] == [None]


def test_a_user_is_told_of_his_own():
    shared = burst_of(ONE, TWO, userids=(100, 200))
    others = burst_of(TWO, name="burst-1-bbbbbb", userids=(200,))
    archived = [settled(), settled("burst-8-yyyyyy", T0 + 1, 200, TWO)]

    found = past(shared, others, archived=archived, userid=100)

    assert [row["id"] for row in found.bursts()] == [shared.id, "burst-9-zzzzzz"]
    assert [row["id"] for row in found.jobs()] == [format_f58(ONE)]


def test_when_a_job_would_have_started_here_is_noted_once():
    burst = burst_of(ONE, TWO)

    noted = lifecycle.expect_here(burst, {ONE: T0 + 99, JobId(7): T0})
    again = lifecycle.expect_here(noted, {ONE: T0 + 999})

    here = {job: times.here for job, times in noted.times.items()}
    assert here == {ONE: T0 + 99, TWO: None}
    assert again is noted
    (row, _) = past(noted).jobs()
    assert row["here"] == T0 + 99
    ended = run(noted, ONE)
    assert dict(ended.sums.recent)[ONE].here == T0 + 99


@pytest.mark.parametrize(
    ("expected", "here"), [(T0 + 4000.4, T0 + 4000), (float("inf"), None)]
)
def test_a_tick_notes_the_forecast_of_the_jobs_it_bursts_for(expected, here):
    start = StartEstimate(expected=expected, latest=expected, earliest=T0)
    seen = world(view(job(1, whole(2)), job(2, whole(1))))
    seen = but(seen, forecasts={ONE: start})

    made = tick_once(seen)

    known = {
        number: times.here
        for burst in made.records.bursts.values()
        for number, times in burst.times.items()
    }
    assert known == {ONE: here, TWO: None}
