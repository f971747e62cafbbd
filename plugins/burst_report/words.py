# SPDX-License-Identifier: MIT
"""How numbers are written in a report."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence


def amount(money: float) -> str:
    """Return an amount; of less than a hundredth its first two digits."""
    return f"{money:,.2f}" if abs(money) >= 0.01 or not money else f"{money:.2g}"


def when(seconds: float) -> str:
    """Return a time, seconds since the epoch, in UTC."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.strftime("%Y-%m-%d %H:%M:%S")


def clock(seconds: float, *, days: bool) -> str:
    """Return a time for an axis in UTC: with its day if the axis has several."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.strftime("%m-%d %H:%M" if days else "%H:%M:%S")


def quantile(sorted_values: Sequence[float], part: float) -> float:
    """Return the least that such a part of the values does not exceed.

    There is at least one.
    """
    return sorted_values[max(0, math.ceil(part * len(sorted_values)) - 1)]
