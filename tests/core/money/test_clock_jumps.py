# SPDX-License-Identifier: MIT
"""Jumps of the clock between two starts of the daemon neither free nor double money."""

import datetime
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from burst.core.money.accounts import keep_accounts
from burst.core.money.budget import Budgets
from burst.core.money.ledger import Use
from burst.core.money.money import UNIT
from burst.core.money.periods import day_of, month_of, sum_of
from burst.core.records import Records, Transaction
from burst.core.world import World
from burst.model.burst import BurstId, State
from tests.builders import but, identity, settings
from tests.core.money.budgets import HOUR, entry
from tests.core.money.money_sim import sim, submit

DAY = 86400.0
LATE = datetime.datetime(2026, 11, 30, 23, 59, tzinfo=datetime.UTC).timestamp()
"""A minute before a month ends."""
JUMPS = {"over the month": 120.0, "two months": 61 * DAY, "back": -31 * DAY}
WORLD = World(identity=identity(), slots=(), lead=None)
SETTINGS = settings(
    budget=[{"limit": 10, "per": "month"}, {"limit": 10, "per": "day"}],
    providers={"local": {"type": "fake"}},
)


@pytest.mark.parametrize("seconds", JUMPS.values(), ids=JUMPS)
def test_what_is_settled_is_as_it_was_once_the_clock_is_right_again(seconds):
    its = sim(1000.0)
    its.now = LATE - 20 * DAY
    job = submit(its)
    its.until(its.in_state(State.ONLINE), ticks=30)
    its.lead.finish(job)
    its.until(its.in_state(State.INACTIVE), ticks=200)
    before = its.records
    (spent,) = (each.costs.total for each in before.settled.values())
    assert spent
    right = its.now
    for now in (right + seconds, right):
        its.now = now
        its.boot()
        its.tick(3)
    after = its.records
    assert after.periods == before.periods
    assert Budgets(its.settings.budget, after, {}, its.now).states()[0].settled == spent


def state_at(records, now):
    """What is settled by the budgets of that month and of that day."""
    return [
        state.settled for state in Budgets(SETTINGS.budget, records, {}, now).states()
    ]


@hypothesis_settings(deadline=None)  # it takes time, and more on a busy machine
@given(st.lists(st.sampled_from([60.0, DAY, 31 * DAY, -DAY, -40 * DAY]), max_size=12))
def test_each_cost_counts_once_in_its_day_and_its_month(jumps):
    records, now = Records(), LATE
    true: Counter[str] = Counter()
    times = []
    for number, jump in enumerate(jumps):
        now += jump
        times.append(now)
        name = BurstId(f"burst-0-{number:06}")
        work = Use("idle", busy=1)
        live = entry(9, made=now, name=name)
        tx = Transaction(records, WORLD, SETTINGS, now)
        # It lived for an hour before now, as nothing but a burst that is gone settles.
        tx.entries[name] = but(live, at=now - HOUR, use=work, joined=True)
        keep_accounts(tx)
        records = tx.result()
        true[day_of(now)] += UNIT
        true[month_of(day_of(now))] += UNIT
        assert not records.entries
        for day, at in {day_of(at): at for at in times}.items():
            assert state_at(records, at) == [true[month_of(day)], true[day]]
    total = sum_of(period.total for period in records.periods.values())
    assert total == sum_of(each.costs for each in records.settled.values())
    assert total.total == len(jumps) * UNIT
