# SPDX-License-Identifier: MIT
"""Format amounts and times for a report, and find quantiles."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence


def amount(money: float) -> str:
    """Return an amount with two decimals; if it is below 0.01, with two digits."""
    return f"{money:,.2f}" if abs(money) >= 0.01 or not money else f"{money:.2g}"


def when(seconds: float) -> str:
    """Return a time in seconds since the epoch as text, in UTC."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.strftime("%Y-%m-%d %H:%M:%S")


def clock(seconds: float, *, days: bool) -> str:
    """Return a time for an axis in UTC: with its day if the axis has several."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.strftime("%m-%d %H:%M" if days else "%H:%M:%S")


def quantile(sorted_values: Sequence[float], part: float) -> float:
    """Return the least value that this part of the values does not exceed.

    There must be at least one value.
    """
    return sorted_values[max(0, math.ceil(part * len(sorted_values)) - 1)]
