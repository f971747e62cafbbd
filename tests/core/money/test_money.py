# SPDX-License-Identifier: MIT
"""Amounts of money: exact sums, stated rounding."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money.money import (
    Money,
    format_money,
    from_units,
    price_of,
    reserve_for,
    split,
    to_units,
)

AMOUNTS = st.integers(0, 10**15).map(Money)


@pytest.mark.parametrize(
    ("units", "amount"),
    [(0.1, 100_000), (3, 3_000_000), (2.5, 2_500_000), (0.0000004, 0), (0, 0)],
)
def test_an_offers_price_is_the_decimal_number_that_is_written(units, amount):
    assert from_units(units) == amount


@pytest.mark.parametrize("bad", [-0.01, math.nan, math.inf, 2e12])
def test_what_is_no_amount_is_refused(bad):
    with pytest.raises(ValueError, match="not an amount of money"):
        from_units(bad)


@given(AMOUNTS)
def test_an_amount_in_units_reads_back(amount):
    assert from_units(to_units(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0.00"),
        (3_100_000, "3.10"),
        (12_345_678_901, "12345.68"),
        (10_000, "0.01"),
        (4_200, "0.0042"),
        (4_270, "0.0043"),
        (123, "0.000123"),
        (7, "0.000007"),
    ],
)
def test_people_read_hundredths_and_never_nothing_for_something(amount, text):
    assert format_money(Money(amount)) == text


def test_a_node_for_an_hour_costs_its_price():
    assert price_of(3600.0, Money(2_500_000)) == 2_500_000
    assert reserve_for(1, 3600.0, Money(2_500_000)) == 2_500_000
    assert reserve_for(3, 0.001, Money(1)) == 1


@given(st.integers(1, 1000), st.floats(0, 1e7), AMOUNTS)
def test_a_reservation_is_never_less_than_what_is_paid(nodes, seconds, price):
    paid = price_of(nodes * seconds, price)
    reserved = reserve_for(nodes, seconds, price)
    # The product of floats is rounded itself, by a part in 2**52.
    assert reserved >= paid - 1 - paid // 2**50


@given(st.integers(1, 1000), st.integers(0, 10**7), AMOUNTS, AMOUNTS)
def test_with_a_fee_either(nodes, seconds, price, fee):
    """To the last micro-unit, as products of whole numbers are exact."""
    paid = price_of(float(nodes * seconds), price, fee, nodes)
    assert paid <= reserve_for(nodes, float(seconds), price, fee) <= paid + 1


@given(AMOUNTS, st.lists(st.floats(0, 1e9), max_size=20), st.floats(1e-6, 1e9))
def test_parts_come_to_the_whole(amount, weights, last):
    parts = split(amount, [*weights, last])
    assert sum(parts) == amount
    assert all(part >= 0 for part in parts)
