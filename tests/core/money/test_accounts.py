# SPDX-License-Identifier: MIT
"""Money is reserved with a burst's record and settled with its end."""

import json
import math

import msgspec
import pytest

from burst.config import MOST_UNITS
from burst.core import burst_requests
from burst.core.money import accounts, periods
from burst.core.money.ledger import MOST_SHARES, Payer, counted
from burst.core.money.life import Life, lives_until
from burst.core.money.money import UNIT, from_price
from burst.core.record_size import without_oversized
from burst.core.records import Records, Transaction
from burst.core.tick import TickResult
from burst.core.world import World
from burst.model.burst import State
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from burst.provider import Failure
from burst.testing import FakeProvider
from tests.builders import T0, but, identity, settings, whole
from tests.core.money.budgets import settled_burst
from tests.sim import Sim

PRICES = {"local.nodes": 3600.0}
"""One unit for a node and second."""
LENT = whole(3, constraint='{"properties":["burst"]}')
UNITS = {"deadlines": {"run": "1h"}, "prices": PRICES}


@pytest.fixture
def sim():
    return Sim(**UNITS)


def entries(sim):
    return sim.records.entries


def settled(sim):
    return list(sim.records.settled.values())


def on_disk(sim, kind):
    """The records of a kind as the store has them."""
    return {
        key.partition("/")[2]: json.loads(text)
        for key, text in sim.lead.disk.records.items()
        if key.startswith(f"{kind}/")
    }


def test_what_bounds_the_life_of_a_burst_is_reserved_for():
    limits = settings(deadlines={"run": "1h", "idle": "1m", "reap": "10s"})
    boot = limits.provision_limit("local") + limits.deadlines.join
    start = limits.deadlines.release
    life = Life(provider="local", lease_end=0.0)

    def until(**changes):
        return lives_until(but(life, **changes), limits, T0) - T0

    assert until() == boot + 60 + 10
    assert until(run_times=(0.0,)) == boot + start + 3600 + 60 + 10
    assert until(run_times=(5.0, 7.0)) == boot + start + 7 + 60 + 10
    assert until(run_times=(5.0,), online=True) == start + 5 + 60 + 10
    assert until(lease_end=T0 + 99, run_times=(5.0,)) == 99 + 10


def test_a_deadline_without_end_counts_as_the_longest_run():
    limits = settings(deadlines={"idle": "inf", "run": "2h"})
    life = Life(provider="local", lease_end=0.0, online=True)
    assert lives_until(life, limits, T0) == T0 + 7200 + limits.deadlines.reap
    endless = settings(deadlines={"idle": "inf", "run": "inf"})
    assert math.isfinite(lives_until(life, endless, T0))


@pytest.mark.parametrize(
    ("price", "micro"),
    [(0.5, UNIT // 2), (-1.0, 0), (math.nan, 0), (math.inf, int(MOST_UNITS * UNIT))],
)
def test_a_price_from_a_plug_in_may_be_anything(price, micro):
    assert from_price(price) == micro


def test_money_is_reserved_in_the_write_that_puts_a_burst_on_record(sim):
    sim.lead.submit(LENT, userid=7, bank="physics", queue="gpu", duration=60.0)
    sim.until(sim.in_state(State.PROVISION))
    (entry,) = entries(sim).values()
    assert on_disk(sim, "entry").keys() == on_disk(sim, "burst").keys()
    assert entry.payers == {Payer(7, "physics", "gpu")}
    assert entry.priced_by == "site"
    assert entry.reserved == 3 * (entry.until - sim.now) * UNIT
    assert sim.burst.lease.price == 3600.0


def test_a_burst_is_settled_once_with_what_its_nodes_did(sim):
    job = sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(10)
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)

    assert entries(sim) == {}
    (done,) = settled(sim)
    reserved = on_disk(sim, "settled")[done.burst]["reserved"]
    events = {e.name: e.timestamp for e in sim.burst.events}
    life = events["reaped"] - events["provision-start"]
    assert done.costs.total == 3 * life * UNIT <= reserved
    assert done.costs.boot == 3 * (events["online"] - events["provision-start"]) * UNIT
    assert done.costs.teardown == 3 * (events["reaped"] - events["drained"]) * UNIT
    assert done.costs.work >= 3 * 10 * UNIT
    assert done.costs.idle >= 3 * 290 * UNIT
    assert done.costs.never_joined == 0
    sim.tick(5)
    (period,) = sim.records.periods.values()
    assert period.total == done.costs
    assert period.bursts == 1


class NodeGroups(FakeProvider):
    """Its bursts have nodes before there is any follower."""

    def _status(self, burst):
        return but(super()._status(burst), followers=(), has_nodes=True)


class NodeGroupSim(Sim):
    provider_type = NodeGroups


def test_nodes_without_followers_are_paid_for():
    sim = NodeGroupSim(**UNITS)
    job = sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.provider.starts_only = 0
    sim.until(sim.in_state(State.PROVISION))
    sim.tick(60)
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    (done,) = settled(sim)
    assert done.costs.never_joined >= 3 * 59 * UNIT


def test_nodes_that_are_there_beside_one_that_is_not_to_be_had_are_paid_for(sim):
    sim.provider.starts_only, sim.provider.has_nodes = 0, True
    sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.PROVISION))
    sim.tick(60)
    sim.provider.ends_after = 60
    (burst,) = sim.cloud.bursts.values()
    burst.failed, burst.failure = {"burst-0-2": "stock-out"}, Failure.CAPACITY
    sim.until(lambda: settled(sim), ticks=120)
    assert settled(sim)[0].costs.never_joined >= (3 * 59 + 2 * 50) * UNIT


@pytest.mark.parametrize("has_nodes", [False, True])
def test_nodes_that_are_there_and_never_join_are_paid_for(sim, has_nodes):
    sim.provider.starts_only, sim.provider.has_nodes = 0, has_nodes
    job = sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.PROVISION))
    sim.tick(60)
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    (done,) = settled(sim)
    assert done.costs.total == done.costs.never_joined
    if has_nodes:
        assert done.costs.total >= 3 * 59 * UNIT
    else:
        assert done.costs.total == 0


def test_a_daemon_that_starts_again_goes_on_counting(sim):
    job = sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.ONLINE))
    sim.tick()
    sim.now += 100
    sim.boot()
    sim.tick()
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    (done,) = settled(sim)
    assert done.costs.work >= 3 * 100 * UNIT


def test_a_request_ahead_of_jobs_is_paid_by_whose_job_comes(sim):
    sim.tick(2)
    sim.request(burst_requests.request_nodes(3))
    (entry,) = entries(sim).values()
    assert entry.payers == {Payer()}
    sim.until(sim.in_state(State.ONLINE))
    sim.lead.submit(LENT, userid=7, duration=7200.0)
    sim.tick()
    (later,) = entries(sim).values()
    assert later.payers == {Payer(7)}
    assert later.until == entry.until


def test_a_job_that_is_assigned_to_a_live_burst_has_more_reserved():
    sim = Sim(limits={"max_bursts": 1}, **UNITS)
    job = sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.ONLINE))
    (entry,) = entries(sim).values()
    sim.lead.submit(LENT, userid=7, bank="maths", duration=7200.0)
    sim.tick(100)
    sim.lead.finish(job)
    sim.tick()
    (later,) = entries(sim).values()
    assert later.payers == {Payer(7), Payer(7, "maths")}
    assert later.until > entry.until
    assert later.reserved > entry.reserved
    assert later.grown == 0


def test_a_burst_that_lives_longer_than_was_thought_is_told_and_not_ended(sim):
    sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.ONLINE))
    (entry,) = entries(sim).values()
    sim.now = entry.until
    sim.tick()
    (later,) = entries(sim).values()
    assert later.grown == later.reserved - entry.reserved > 0
    assert sim.state() is State.ONLINE
    (told,) = [e for e in sim.burst.events if e.name == "outlived"]
    assert told.context["note"].startswith("it outlives its reservation; ")


def test_a_burst_of_before_there_was_a_ledger_gets_an_entry(sim):
    sim.lead.submit(LENT, userid=7, duration=60.0)
    sim.until(sim.in_state(State.ONLINE))
    for key in [k for k in sim.lead.disk.records if k.startswith("entry/")]:
        del sim.lead.disk.records[key]
    sim.boot()
    sim.tick()
    assert entries(sim).keys() == {sim.burst.id}


def test_an_entry_that_cannot_be_read_is_left_as_it_is(sim):
    sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    key = f"entry/{sim.burst.id}"
    sim.lead.disk.records[key] = "{"
    sim.boot()
    sim.tick(3)
    assert sim.lead.disk.records[key] == "{"
    assert key in sim.records.unreadable


def test_a_burst_whose_record_cannot_be_read_stays_reserved_for(sim):
    job = sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    name = sim.burst.id
    sim.lead.disk.records[f"burst/{name}"] = "{"
    sim.boot()
    sim.tick(3)
    assert entries(sim).keys() == {name}
    sim.take_down(name)
    sim.lead.finish(job)
    sim.until(lambda: not entries(sim), ticks=60)
    assert [each.burst for each in settled(sim)] == [name]


def test_what_cannot_be_stored_is_not_settled(sim):
    job = sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    before = sim.engine.snapshot
    sim.tick()
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    last = sim.engine.snapshot
    result = TickResult(records=last.records, events=(), actions=(), decisions={})
    key = f"ledger/{periods.day_of(T0)}"
    left = without_oversized(result, before.records, [key], sim.now).records
    assert left.entries is before.records.entries
    assert (dict(left.settled), dict(left.periods)) == ({}, {})


def test_nothing_is_settled_into_a_record_that_cannot_be_read(sim):
    job = sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    day = periods.day_of(T0)
    sim.lead.disk.records[f"ledger/{day}"] = "{"
    sim.boot()
    sim.tick()
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    sim.tick(3)
    assert entries(sim).keys() == {sim.burst.id}
    del sim.lead.disk.records[f"ledger/{day}"]
    sim.boot()
    sim.tick()
    assert entries(sim) == {}


def test_of_settled_bursts_the_last_are_known_one_by_one(sim):
    sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    records = sim.records
    (entry,) = records.entries.values()
    many = {
        f"burst-0-{n:06}": but(entry, burst=f"burst-0-{n:06}")
        for n in range(accounts.KEPT_SETTLED + 5)
    }
    for name, each in many.items():
        sim.lead.disk.records[f"entry/{name}"] = msgspec.json.encode(each).decode()
    sim.boot()
    sim.tick()
    assert len(settled(sim)) == accounts.KEPT_SETTLED
    (period,) = sim.records.periods.values()
    assert period.bursts == len(many)


def row(number):
    """A burst that was settled, the later the higher its number."""
    return settled_burst(f"burst-0-{number:06}", T0 + number, ended=T0 + number)


def rows_left(count, archived):
    """The numbers of rows that stay on record of so many."""
    rows = {each.burst: each for each in map(row, range(count))}
    known = None if archived is None else {row(n).burst: row(n).made for n in archived}
    world = World(identity=identity(), slots=(), lead=None, archived=known)
    tx = Transaction(Records(settled=rows), world, settings(), T0)
    accounts.keep_accounts(tx)
    return [int(name.rpartition("-")[2]) for name in tx.settled]


def test_a_settled_burst_leaves_the_records_once_it_is_archived():
    kept = accounts.KEPT_SETTLED
    assert rows_left(kept, [0]) == list(range(kept))
    assert rows_left(kept + 3, []) == list(range(kept + 3))
    assert rows_left(kept + 3, [1, kept + 1]) == [0, *range(2, kept + 3)]
    assert rows_left(kept + 3, None) == list(range(3, kept + 3))


def test_another_burst_of_the_same_id_is_not_taken_for_archived():
    rows = {each.burst: each for each in map(row, range(accounts.KEPT_SETTLED + 1))}
    earlier = {row(0).burst: T0 - 1}
    world = World(identity=identity(), slots=(), lead=None, archived=earlier)
    tx = Transaction(Records(settled=rows), world, settings(), T0)
    accounts.keep_accounts(tx)
    assert row(0).burst in tx.settled


def test_the_records_stay_bounded_while_nothing_can_be_archived():
    most = accounts.MOST_SETTLED
    assert rows_left(most + 3, []) == list(range(3, most + 3))


def test_days_become_months(sim):
    old = msgspec.json.encode(periods.Period(bursts=3)).decode()
    kept = [periods.day_of(sim.now - n * 86400) for n in range(periods.KEPT_DAYS)]
    for day in ("1969-11-29", "1969-11-30", *kept):
        sim.lead.disk.records[f"ledger/{day}"] = old
    sim.boot()
    sim.tick()
    assert on_disk(sim, "ledger").keys() == {"1969-11", *kept}
    assert sim.records.periods["1969-11"].bursts == 6


def test_an_isolated_burst_works_as_long_as_its_program_runs():
    sim = Sim(modes=("joined", "isolated"), **UNITS)
    alone = BurstPreferences(mode="isolated", wait=0)
    sim.provider.runs_for = 5
    job = sim.lead.submit(LENT, preferences=alone, userid=7)
    sim.until(sim.in_state(State.INACTIVE), ticks=200)
    (done,) = settled(sim)
    assert done.costs.work > 0
    (share,) = done.shares
    assert share.job == job
    assert share.node_seconds > 0


def test_a_job_whose_share_is_merged_while_it_runs_goes_on_paying(sim):
    one = whole(1, constraint='{"properties":["burst"]}')

    def begin(request, bank):
        job = sim.lead.submit(request, userid=7, bank=bank)
        sim.until(lambda: sim.lead.jobs[job].state is JobState.RUN)
        return job

    sim.lead.finish(begin(LENT, "maths"))
    long, began = begin(one, "physics"), sim.now
    for ticks in [1] * (MOST_SHARES - 2) + [60, 1, 60]:
        sim.tick(ticks, seconds=5.0)
        sim.lead.finish(begin(one, "maths"))
    (entry,) = entries(sim).values()
    assert long not in {share.job for share in entry.shares}
    shares = counted(entry, sim.now).shares
    used = sum(s.node_seconds for s in shares if s.payer.bank == "physics")
    assert sim.now - began - 5 <= used <= sim.now - began
