# SPDX-License-Identifier: MIT
"""The daemon keeps the standing minimums of its settings, and tells what they cost."""

import itertools
import time

import pytest

from burst.core.burst_story import burst_story, next_step_of
from burst.core.cost import seconds_until_drain
from burst.core.money.budget import Budgets
from burst.core.money.cost_report import CostReport
from burst.model.burst import Result, State
from burst.model.reason import Reason
from burst.provider import Failure
from burst.runtime import service_answers
from burst.runtime.manual_burst import manual_burst_settings
from tests.builders import T0, whole
from tests.sim import Sim


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def sim(*standing, **tables):
    """A lead at rest, of which the provider has told its offers."""
    deadlines = {"idle": "5s", "join": "30s", "reap": "30s"}
    local = {"type": "fake", "provision": "60s", "standing": list(standing)}
    its = {
        "deadlines": {**deadlines, **tables.pop("deadlines", {})},
        "providers": {"local": local},
        "prices": {"local.nodes": 3600.0},
        **tables,
    }
    return Sim(**its)


def change(s, *standing):
    """The settings are read again."""
    s.tables["providers"]["local"]["standing"] = list(standing)
    s.boot()


def nodes(s):
    return sorted(burst.lease.nodes for burst in s.live)


def online(s, count):
    return lambda: [b.state for b in s.live] == [State.ONLINE] * count


def lose_one(s, burst, failure=Failure.OTHER):
    """The last follower of a burst is gone."""
    its = next(each for key, each in s.cloud.bursts.items() if key[2] == burst.id)
    its.failed, its.failure = {burst.lease.hosts[-1]: "died"}, failure
    s.lead.lose(burst.lease.ranks[-1])


def named_costs(s, by):
    return {row["name"]: row for row in CostReport(s.records).rows(by)}


def test_nodes_are_kept_in_the_hours_and_end_as_idle_after_them():
    s = sim({"nodes": 2, "hours": "13:48-13:50"})
    s.tick(50)
    assert s.bursts == []
    s.until(online(s, 1))
    assert s.burst.lease.standing == "2 nodes of local, 13:48-13:50"
    begun = s.burst
    s.tick(60)
    assert s.burst.state is State.ONLINE
    assert s.burst.idle_since is not None
    assert s.now - s.burst.idle_since > 5.0
    assert seconds_until_drain(s.burst, s.settings, s.now) is None
    world = s.engine.snapshot.world
    assert "a standing minimum" in next_step_of(s.burst, s.settings, world, s.now)
    s.until(s.in_state(State.INACTIVE), 100)
    assert s.burst.id == begun.id
    assert s.burst.result is Result.COMPLETED
    assert s.burst.since - T0 < 13 * 60


def test_of_two_minimums_the_nodes_of_one_count_for_the_other():
    s = sim({"nodes": 2}, {"nodes": 3, "offer": "nodes"})
    s.until(online(s, 2))
    assert nodes(s) == [1, 2]


def test_a_job_starts_on_nodes_that_stand_and_pays_for_its_work_alone():
    s = sim({"nodes": 2})
    s.until(online(s, 1))
    s.tick(100)
    job = s.submit_lent(2, userid=7)
    s.until(lambda: job in s.lead.running())
    assert len(s.bursts) == 1
    s.tick(10)
    s.lead.finish(job)
    s.tick(20)
    reserved = named_costs(s, "user")
    assert reserved["7"]["reserved"] == 0
    assert reserved["standing minimum"]["reserved"] > 2 * 100
    change(s)
    s.until(s.in_state(State.INACTIVE))
    s.tick()

    for by in ("user", "bank", "queue", "rule", "job"):
        rows = named_costs(s, by)
        standing = rows.pop("standing minimum")
        assert standing["work"] == 0
        assert standing["settled"] == standing["wasted"] > 200
        (jobs,) = rows.values()
        assert jobs["settled"] == jobs["work"]
        assert 20 <= jobs["work"] <= 30
    assert [*named_costs(s, "provider")] == ["local"]


@pytest.mark.parametrize(("keeps", "left"), [(4, 4), (1, 1)])
def test_it_shrinks_only_where_the_minimum_needs_its_idle_nodes_no_more(keeps, left):
    s = sim({"nodes": 4})
    s.until(online(s, 1))
    job = s.submit_lent(1)
    s.until(lambda: job in s.lead.running())
    change(s, {"nodes": keeps})
    s.tick(30)
    assert nodes(s) == [left]
    assert job in s.lead.running()


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ([{"nodes": 4}], [{"nodes": 1}], [1]),
        ([{"nodes": 4, "hours": "13:46-13:48"}, {"nodes": 1}], None, [1]),
        ([{"nodes": 4}, {"nodes": 6, "offer": "nodes"}], [{"nodes": 5}], [2, 3]),
        ([{"nodes": 4}, {"nodes": 6, "offer": "nodes"}], [{"nodes": 4}], [4]),
    ],
    ids=["one", "after the hours of one", "two", "of two bursts one is enough"],
)
def test_an_idle_burst_shrinks_to_what_the_minimums_need(before, after, left):
    s = sim(*before)
    most = max(table["nodes"] for table in before)
    s.until(lambda: sum(nodes(s)) == most)
    s.until(lambda: {b.state for b in s.live} == {State.ONLINE})
    if after:
        change(s, *after)
    s.tick(120)
    assert nodes(s) == left
    s.tick(120)
    assert nodes(s) == left


def test_limits_hold_and_it_is_told_what_is_not_there(caplog):
    s = sim({"nodes": 4}, limits={"max_nodes": 2})
    s.until(online(s, 1))
    s.tick(30)
    assert nodes(s) == [2]
    (text,) = s.engine.snapshot.standing
    assert text == "4 nodes of local"
    told = service_answers.status(s.engine.snapshot, None)["standing"]
    assert "limit of 2 nodes in all: 2 in use, 2 more needed" in told[text]
    logged = [line for line in caplog.messages if "standing minimum" in line]
    assert len(logged) == 2, "as nothing was there, and as 2 were"
    s.tables["limits"] = {}
    s.boot()
    s.until(online(s, 2))
    s.tick()
    assert s.engine.snapshot.standing == {}


@pytest.mark.parametrize("failure", [Failure.OTHER, Failure.RECLAIMED])
def test_what_fails_soon_after_it_is_online_is_made_less_and_less_often(
    caplog, failure
):
    s = sim({"nodes": 2})
    for _ in range(3600):
        s.tick()
        for burst in s.live:
            if burst.state is State.ONLINE and s.now - burst.since > 3:
                lose_one(s, burst, failure)
    made = sorted(burst.lease.created for burst in s.bursts)
    pauses = [later - before for before, later in itertools.pairwise(made)]
    first, *others = pauses
    assert first < 60
    assert [round(pause / 600) for pause in others] == [1, 2]
    (why,) = s.engine.snapshot.standing.values()
    assert "(local/nodes: its last 4 bursts could not run jobs: " in why
    assert "died" in why
    logged = [line for line in caplog.messages if "standing minimum" in line]
    assert len(logged) == 3


def test_one_that_served_a_job_is_made_again_at_once():
    s = sim({"nodes": 2})
    for _ in range(3):
        s.until(online(s, 1))
        job = s.submit_lent(2)
        s.until(lambda job=job: job in s.lead.running())
        s.tick(3)
        name = s.live[0].id
        lose_one(s, s.live[0])
        s.until(lambda name=name: not s.records.bursts[name].live)
    s.until(online(s, 1))


def test_a_budget_bounds_it():
    """Nodes are kept as long as the money lasts, 1 for a second, and no longer."""
    budget = {"limit": 4000, "per": "day"}
    s = sim({"nodes": 1}, budget=[budget], deadlines={"reap": "2m"})
    s.until(online(s, 1))
    s.until(s.in_state(State.INACTIVE), 800, 10.0)
    assert "no money left" in s.story()
    s.tick(100, 10.0)
    (row,) = CostReport(s.records).months()
    assert 3000 < row["settled"] <= 4000
    assert row["reserved"] == 0
    assert s.live == []
    (why,) = s.engine.snapshot.standing.values()
    assert "budget" in why


def test_what_stands_is_kept_only_with_what_the_same_tick_buys_in_the_budget():
    """Each of both would fit alone: its next ten minutes, or a burst for the job."""
    s = sim({"nodes": 1}, budget=[{"limit": 825}])
    s.until(online(s, 1))
    (entry,) = s.records.entries.values()
    s.until(lambda: s.now + 36 > entry.until, ticks=200)
    assert s.records.entries[entry.burst].until == entry.until
    s.lead.submit(whole(1, constraint='{"hostlist":["burst-1-[0-3]"]}'), duration=100.0)
    s.tick()
    assert len(s.bursts) == 2
    (state,) = Budgets(s.settings.budget, s.records, {}, s.now).states()
    assert state.used <= state.limit
    assert "no money left" in s.story()


def test_it_is_told_why_a_burst_exists_and_that_it_is_made_again():
    s = sim({"nodes": 2})
    s.until(online(s, 1))
    s.tick(20)
    world = s.engine.snapshot.world
    story = burst_story(s.records, s.burst, s.settings, world, s.now)
    assert story["standing"] == "2 nodes of local"
    assert "(" not in story["next"], "it does not end"
    first = s.burst.id
    s.take_down(first)
    s.until(lambda: online(s, 1)() and s.live[0].id != first)
    assert s.records.bursts[first].result is Result.CANCELED


def test_a_users_budget_counts_what_their_jobs_use_and_not_what_stands():
    def used():
        budgets = Budgets(s.settings.budget, s.records, {}, s.now)
        return budgets.states()[0].used / 1_000_000

    budget = {"match": {"user": "7"}, "limit": 150, "per": "week"}
    s = sim({"nodes": 2}, budget=[budget])
    s.until(online(s, 1))
    s.tick(500)
    assert used() == 0
    for before in (0, 20):
        job = s.submit_lent(2, userid=7, duration=20.0)
        s.until(lambda job=job: job in s.lead.running())
        s.tick(10)
        assert before + 40 <= used() <= 150
        s.lead.finish(job)
        s.tick(20)
        assert before + 20 <= used() <= before + 40
    # Of what is left, a longer one cannot be paid.
    late = s.submit_lent(2, userid=7, duration=100.0)
    s.tick(10)
    assert late not in s.lead.running()
    assert s.decision(late).reason is Reason.TURNED_DOWN
    change(s)
    s.until(s.in_state(State.INACTIVE))
    assert used() == pytest.approx(60, abs=20)


def test_a_job_that_did_not_begin_on_what_stands_is_not_paid_for():
    budget = {"match": {"user": "7"}, "limit": 1000, "per": "week"}
    s = sim({"nodes": 2}, budget=[budget], limits={"max_bursts": 1})
    s.until(online(s, 1))
    first = s.submit_lent(2, userid=8)
    s.until(lambda: first in s.lead.running())
    waits = s.submit_lent(2, userid=7, duration=20.0)
    s.tick(5)
    s.lead.finish(waits, "canceled")
    s.tick(5)
    (state,) = Budgets(s.settings.budget, s.records, {}, s.now).states()
    assert state.used == 0


def test_what_was_booked_for_a_job_is_at_once_for_the_next_of_its_user():
    budget = {"match": {"user": "7"}, "limit": 150, "per": "week"}
    s = sim({"nodes": 2}, budget=[budget])
    s.until(online(s, 1))
    first, second = (s.submit_lent(1, userid=7, duration=100.0) for _ in range(2))
    s.until(lambda: first in s.lead.running())
    s.tick(3)
    assert s.decision(second).reason is Reason.TURNED_DOWN
    s.lead.finish(first)
    s.until(lambda: second in s.lead.running(), ticks=10)


def test_nothing_is_begun_while_the_daemon_stops_or_cannot_store():
    s = sim({"nodes": 2})
    s.engine.stop_provisioning()
    s.tick(10)
    assert s.bursts == []
    s.boot()
    s.lead.disk.full = True
    s.tick(5)
    assert s.bursts == []
    assert not s.provider.running()
    (why,) = s.engine.snapshot.standing.values()
    assert why == "no space left; make room"
    s.lead.disk.full = False
    s.until(online(s, 1))
    s.tick()
    assert s.engine.snapshot.standing == {}


@pytest.mark.parametrize("kinds", [["burst"], ["burst", "entry"]])
def test_a_burst_whose_record_cannot_be_read_counts(kinds):
    s = sim({"nodes": 2})
    s.until(online(s, 1))
    name = s.burst.id
    for kind in kinds:
        s.lead.disk.records[f"{kind}/{name}"] = b"?"
    s.boot()
    s.tick(20)
    assert s.live == []
    (why,) = s.engine.snapshot.standing.values()
    assert why.startswith(f"record burst/{name} cannot be read; its nodes count as")
    change(s, {"nodes": 3})
    s.until(online(s, 1))
    s.tick(20)
    assert nodes(s) == [1]
    s.take_down(name)
    s.until(lambda: [b.state for b in s.live if b.id != name] == [State.ONLINE] * 2)
    assert nodes(s) == [1, 2]


def test_run_burst_keeps_no_other_nodes():
    s = sim({"nodes": 2})
    its = manual_burst_settings(s.settings, "local", "burst-0-[0-3]")
    assert its.providers["local"].standing == ()
    assert manual_burst_settings(s.settings, "new", "burst-0-[0-3]").providers["new"]
