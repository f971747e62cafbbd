# SPDX-License-Identifier: MIT
"""Amounts of money as whole numbers, so that sums are exact.

An amount is in micro-units: millionths of the site's currency, which has no name here.
A price is an amount for one node and hour, a fee is an amount for one burst and hour.

Rounding: what is reserved is rounded up, what was paid to the nearest micro-unit, half
to even. `split` makes parts of an amount, whose sum is the amount.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NewType

from burst.config import MOST_UNITS

Money = NewType("Money", int)
"""Micro-units."""

UNIT = 1_000_000
"""Micro-units of one unit of the currency."""
_NOTHING = Money(0)
_HOUR_S = 3600
_HUNDREDTH = decimal.Decimal("0.01")


def from_units(amount: float) -> Money:
    """Return an amount of the currency, such as an offer's price, in micro-units.

    The decimal number counts as it is written: 0.1 is 100,000. Raises ValueError for an
    amount that is negative, larger than MOST_UNITS or not a number.
    """
    if not 0 <= amount <= MOST_UNITS:
        raise ValueError(f"{amount} is not an amount of money")
    return Money(round(Fraction(repr(float(amount))) * UNIT))


def to_units(amount: Money) -> float:
    """Return an amount in units of the currency, for JSON; exact to 15 digits."""
    return amount / UNIT


def format_money(amount: Money) -> str:
    """Return an amount for people, to hundredths.

    An amount below a hundredth has as many digits as show that it is not 0.
    """
    units = decimal.Decimal(amount) / UNIT
    if amount == 0 or abs(units) >= _HUNDREDTH:
        return f"{units:.2f}"
    return f"{units:.2g}" if abs(amount) >= UNIT // 1000 else f"{units:f}".rstrip("0")


def from_price(price: float) -> Money:
    """Return an offer's price or fee, which a plug-in gave: it may be any number."""
    if not price > 0:
        return Money(0)
    return from_units(min(price, MOST_UNITS))


def price_of(
    node_seconds: float, price: Money, fee: Money = _NOTHING, nodes: int = 1
) -> Money:
    """Return what so many node-seconds cost, rounded to the nearest micro-unit.

    `fee` is for an hour of the burst, which has so many nodes. The sum is rounded once,
    so that it is not more than `reserve_for` the same time.
    """
    each = price + Fraction(fee, max(1, nodes))
    return Money(round(Fraction(node_seconds) * each / _HOUR_S))


def reserve_for(
    nodes: int, seconds: float, price: Money, fee: Money = _NOTHING
) -> Money:
    """Return what a burst of so many nodes may cost for so long, rounded up.

    `fee` is for an hour of the burst.
    """
    return Money(math.ceil(Fraction(seconds) * (nodes * price + fee) / _HOUR_S))


def reserve_part(node_seconds: float, price: Money, fee: Money, nodes: int) -> Money:
    """Return what so many node-seconds of a burst may cost, rounded up.

    `fee` is for an hour of the burst, which has so many nodes.
    """
    each = price + Fraction(fee, max(1, nodes))
    return Money(math.ceil(Fraction(node_seconds) * each / _HOUR_S))


def split(amount: Money, weights: Sequence[float]) -> list[Money]:
    """Return the amount in parts proportional to the weights.

    At least one weight is above 0. The sum of the parts is the amount, and no part is
    off by a micro-unit or more.
    """
    # Whole numbers in the same proportion; fractions would take ten times as long.
    ratios = [weight.as_integer_ratio() for weight in weights]
    scale = math.lcm(*(below for _, below in ratios))
    numbers = [above * (scale // below) for above, below in ratios]
    whole = sum(numbers)
    parts: list[Money] = []
    before, reached = 0, 0
    for number in numbers:
        reached += number
        upto = _nearest(amount * reached, whole)
        parts.append(Money(upto - before))
        before = upto
    return parts


def _nearest(above: int, below: int) -> int:
    """Return the whole number that is nearest to a fraction, half to even."""
    found, rest = divmod(2 * above + below, 2 * below)
    return found - 1 if rest == 0 and found % 2 else found
