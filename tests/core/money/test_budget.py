# SPDX-License-Identifier: MIT
"""Budgets: what is left, what may not be bought, and when they begin anew."""

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money.budget import budget_warnings, next_begin
from burst.core.money.ledger import OTHERS, Payer
from burst.core.money.periods import midnight
from tests.builders import but
from tests.core.money.budgets import (
    ANN,
    BEN,
    HOUR,
    NOON,
    bought,
    budget,
    budgets,
    entry,
    settled,
    units,
)

DAY = 24 * HOUR


def left(*args, **fields):
    (state,) = budgets(*args, **fields).states()
    return state.left / units(1)


def test_what_is_settled_and_reserved_is_not_left():
    assert left(budget(10)) == 10
    assert left(budget(10), d1=settled(2), d22=settled(3)) == 5
    assert left(budget(10, "day"), d1=settled(2), d22=settled(3)) == 7
    assert left(budget(10, "week"), d15=settled(2), d16=settled(3)) == 7
    assert left(budget(10), entries=[entry(4)], d1=settled(2)) == 4
    assert left(budget(10), d1=settled(99)) == 0


def test_a_burst_counts_for_as_long_as_it_lives():
    old = entry(4, made=NOON - 3 * DAY)
    assert left(budget(10, "day"), entries=[old]) == 6


@pytest.mark.parametrize(
    ("match", "used"),
    [
        ({}, 7),
        ({"user": 1}, 4),
        ({"user": "2"}, 3),
        ({"user": "ann"}, 4),
        ({"user": "nobody"}, 0),
        ({"user": 0}, 0),
        ({"bank": "physics"}, 4),
        ({"queue": "gpu"}, 4),
        ({"bank": "maths", "queue": "gpu"}, 0),
        ({"provider": "gke"}, 7),
        ({"provider": "kube"}, 0),
    ],
)
def test_what_matches_counts(match, used):
    known = {"entries": [entry(4)], "d22": settled(3, BEN), "userids": {"ann": 1}}
    assert left(budget(10, **match), **known) == 10 - used


def test_those_that_are_too_many_to_be_known_count_everywhere():
    assert left(budget(10, user=1), d22=settled(3, OTHERS, "")) == 7
    assert left(budget(10, provider="kube"), d22=settled(3, OTHERS, "")) == 7


def test_a_purchase_that_would_pass_a_limit_is_refused():
    found = budgets(budget(10), budget(5, bank="physics"), entries=[entry(2)])
    assert found.refusing([bought(3)]) is None
    assert found.refusing([bought(2), bought(1)]) is None
    state, need = found.refusing([bought(3.5)])
    assert (state.limit, need) == (units(5), units(3.5))
    assert found.refusing([bought(8, [BEN])]) is None
    state, _ = found.refusing([bought(8.1, [BEN])])
    assert state.limit == units(10)


def test_of_several_that_are_short_it_is_the_one_that_has_money_again_last():
    day, month = budget(10, "day"), budget(12)
    used = entry(8)
    for order in ((day, month), (month, day)):
        state, _ = budgets(*order, entries=[used]).refusing([bought(5)])
        assert state.limit == units(12)
    # What is too much for a whole day is not to be had by waiting.
    state, _ = budgets(month, day, entries=[used]).refusing([bought(11)])
    assert state.limit == units(10)


def test_what_a_plan_buys_is_not_left_for_the_rest_of_it():
    found = budgets(budget(10))
    assert found
    found.commit([bought(6)])
    assert found.refusing([bought(5)])
    assert found.refusing([bought(4)]) is None
    assert found.states()[0].reserved == units(6)


def test_a_copy_counts_nothing_that_is_committed_later():
    found = budgets(budget(10))
    found.commit([bought(3)])
    before = found.copy()
    found.commit([bought(6)])
    assert found.refusing([bought(7)])
    assert before.refusing([bought(7)]) is None
    assert before.states()[0].reserved == units(3)


def test_what_takes_the_place_of_another_needs_the_difference():
    found = budgets(budget(5), entries=[entry(4)])
    assert found.refusing([bought(5)], bought(4)) is None
    assert found.refusing([bought(5.5)], bought(4))
    found.commit([bought(5)], bought(4))
    assert found.states()[0].left == 0
    assert found.refusing([bought(5)], bought(5)) is None


def test_a_user_who_joins_bears_all_of_the_burst():
    found = budgets(budget(5, user=2), entries=[entry(6)])
    assert found.refusing([bought(6, [ANN, BEN])], bought(6))


def test_a_burst_of_another_day_is_kept_by_the_money_of_both():
    made = NOON - DAY
    found = budgets(budget(10, "day"), entries=[entry(4, made=made)], d21=settled(5))
    before = bought(4, made=made)
    assert found.refusing([bought(5, made=made)], before) is None
    state, _ = found.refusing([bought(5.5, made=made)], before)
    assert state.window.begins == midnight(datetime.date(2026, 11, 21))


def test_what_costs_nothing_needs_no_money():
    free = but(bought(5), price=units(0))
    assert budgets(budget(0)).refusing([free]) is None
    assert budgets(budget(0)).refusing([bought(1)])
    assert not budgets()


def test_after_its_last_day_nothing_is_bought():
    yesterday = datetime.date(2026, 11, 21)
    today = datetime.date(2026, 11, 22)
    over = but(budget(10), until=yesterday)
    assert left(over) == 0
    assert budgets(over).states()[0].over
    last = but(budget(10), until=today)
    assert left(last) == left(last, now=NOON + DAY / 2 - 0.5) == 10
    assert left(last, now=NOON + DAY / 2) == 0


@pytest.mark.parametrize(
    ("key", "amount"),
    [
        ("ledger/2026-11-22", 0),
        ("ledger/2026-11-21", 10),
        ("entry/burst-0-aaaaaa", 0),
        ("settled/burst-0-aaaaaa", 10),
    ],
)
def test_nothing_is_bought_while_what_is_used_cannot_be_read(key, amount):
    assert left(budget(10, "day"), unreadable=[key]) == amount


def test_the_next_begin_of_any_budget():
    found = next_begin([budget(1), budget(1, "day"), budget(1, "week")], NOON)
    assert found == midnight(datetime.date(2026, 11, 23))
    assert math.isinf(next_begin([], NOON))


def test_what_is_hardly_meant_is_said_in_words():
    over = but(budget(10), until=datetime.date(2026, 11, 21))
    assert budget_warnings(
        [over, budget(0, provider="gke"), budget(1, user="ann")], {}, NOON
    ) == [
        "budget everything, per month: its last day was 2026-11-21; nothing that it"
        " matches is bought (remove it, or set until)",
        "budget provider gke, per month: its limit is 0; nothing that it matches is"
        " bought",
        "budget user ann, per month: user ann is not known, so nothing counts towards"
        " it",
    ]
    assert budget_warnings([budget(1, user="ann")], {"ann": 1}, NOON) == []


AMOUNTS = st.floats(0.01, 5)
PAYERS = st.frozensets(
    st.sampled_from([ANN, BEN, Payer(), OTHERS]), min_size=1, max_size=3
)


@given(
    st.lists(st.tuples(AMOUNTS, PAYERS, st.sampled_from(["gke", "kube"])), max_size=20)
)
def test_whatever_is_bought_no_limit_is_passed(purchases):
    found = budgets(
        budget(9), budget(4, user=1), budget(3, "day", provider="kube", bank="maths")
    )
    for amount, payers, provider in purchases:
        wanted = [bought(amount, payers, provider)]
        if found.refusing(wanted) is None:
            found.commit(wanted)
    assert all(state.used <= state.limit for state in found.states())
