# SPDX-License-Identifier: MIT
"""Days, weeks and months, and their sums."""

import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money import periods
from burst.core.money.ledger import OTHERS, Costs, Payer
from burst.core.money.money import Money
from burst.core.money.periods import KEPT_DAYS, MOST_GROUPS, Group, Period
from burst.lead import MAX_VALUE_BYTES

DAY = 86400.0
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC).timestamp()  # a Sunday


def group(userid=1):
    return Group(Payer(userid), "gke", "n2")


def costs(amount=1):
    return Costs(work=Money(amount))


@pytest.mark.parametrize(
    ("per", "first", "last"),
    [
        ("day", "2026-11-22", "2026-11-22"),
        ("week", "2026-11-16", "2026-11-22"),
        ("month", "2026-11-01", "2026-11-30"),
    ],
)
def test_a_window_has_its_days(per, first, last):
    window = periods.window(per, NOON)
    days = window.periods(day_before(n) for n in range(-60, 60))
    assert (days[-1], days[0]) == (first, last)


@given(st.sampled_from(["day", "week", "month"]), st.integers(0, 2**32))
def test_windows_follow_each_other_without_a_gap(per, at):
    found = periods.window(per, at)
    assert found.begins <= at < found.ends
    assert periods.window(per, found.ends).begins == found.ends
    assert periods.window(per, found.ends - 1) == found


def test_sums_are_by_group():
    period = Period().plus([(group(), costs(2))], 1)
    period = period.plus([(group(), costs(3)), (group(2), costs(5))], 1)
    assert dict(period.groups) == {group(): costs(5), group(2): costs(5)}
    assert period.total.total == 10
    assert period.bursts == 2


def test_groups_are_bounded_and_nothing_is_lost():
    many = [(group(n), costs()) for n in range(3 * MOST_GROUPS)]
    period = Period().plus(many, 1)
    assert len(period.groups) == MOST_GROUPS
    assert period.total.total == 3 * MOST_GROUPS
    assert dict(period.groups)[Group(OTHERS, "", "")].total > 1


def test_the_largest_record_fits_the_store():
    money = Money(10**15)
    name = "x" * 64
    payers = [Payer(10**9 + n, name, name, name) for n in range(MOST_GROUPS)]
    costs = Costs(money, money, money, money, money)
    many = [(Group(payer, name, name, "offer"), costs) for payer in payers]
    assert len(msgspec.json.encode(Period().plus(many, 1))) < MAX_VALUE_BYTES


def day_before(days):
    return periods.day_of(NOON - days * DAY)


def days(*before):
    """A record of one micro-unit for each day so many days before now."""
    return {day_before(n): Period().plus([(group(), costs())], 1) for n in before}


def test_days_are_merged_into_their_month_once_no_budget_is_for_them():
    found = days(51, 52, *range(KEPT_DAYS))
    found["2026-10"] = Period().plus([(group(), costs(7))], 4)

    merged = periods.merge_old(found, {}, NOON)

    month = {"2026-10": Period(((group(), costs(9)),), 6)}
    assert merged == days(*range(KEPT_DAYS)) | month
    assert periods.merge_old(found, {"ledger/2026-10": ""}, NOON) == found


def test_no_day_is_merged_that_only_a_clock_that_is_ahead_calls_old():
    found = days(*range(KEPT_DAYS))
    assert periods.merge_old(found, {}, NOON + 400 * DAY) == found


def test_no_day_is_merged_that_is_not_old_by_a_clock_that_is_behind():
    found = days(*range(KEPT_DAYS), 20_000)
    long_ago = NOON - 20_000 * DAY
    assert periods.merge_old(found, {}, long_ago) == found
    month = periods.month_of(day_before(20_000))
    assert periods.merge_old(found, {}, NOON) == {
        **days(*range(KEPT_DAYS)),
        month: found[day_before(20_000)],
    }


@pytest.mark.parametrize(("per", "found"), [("month", ["2026-11"]), ("week", [])])
def test_what_was_merged_counts_in_the_month(per, found):
    names = ["2026-10", "2026-11", "2026-12"]
    assert periods.window(per, NOON).periods(names) == found
