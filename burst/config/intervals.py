# SPDX-License-Identifier: MIT
"""Parses the numbers, durations and hours in a rule, which are text.

4   1-8   <4   <=4   >8   >=8        numbers of nodes
<2h   1h-8h                          durations, in the same forms
Mo-Fr 8-18   Sa,Su   22-6            hours of the week
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from burst.model.fsd import parse_fsd

DAY_MINUTES = 1440
WEEK_MINUTES = 7 * DAY_MINUTES
WHOLE_WEEK = (1 << WEEK_MINUTES) - 1
"""All hours of the week as bits, one for each minute from Monday 0:00."""

Interval = tuple[float, float]
"""The least and the most value; both are inside the interval."""

_DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
_DAY = "(?:Mo|Tu|We|Th|Fr|Sa|Su)"
_DAY_LIST = f"{_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?)*"
_HOURS = re.compile(
    rf"(?P<days>{_DAY_LIST})?(?: +(?=\d))?"
    r"(?:(?P<h0>\d{1,2})(?::(?P<m0>\d\d))?-(?P<h1>\d{1,2})(?::(?P<m1>\d\d))?)?",
    re.ASCII | re.IGNORECASE,
)


def parse_nodes(text: str | int) -> Interval:
    """Return a range of numbers of nodes; raises ValueError."""
    return _interval(str(text), _whole, '4, "1-8", "<4" or ">=8"', least=1)


def parse_durations(text: str) -> Interval:
    """Return a range of durations in seconds; raises ValueError."""
    return _interval(text, parse_fsd, '"<2h", ">=8h" or "1h-8h"', least=0)


def parse_hours(text: str) -> int:
    """Return the minutes of the week as bits, from Monday 0:00; raises ValueError."""
    match = _HOURS.fullmatch(text.strip())
    if not match or not match[0]:
        raise ValueError(f'not hours of the week: {text!r} (such as "Mo-Fr 8-18")')
    begin, end = _minutes(match["h0"], match["m0"]), _minutes(match["h1"], match["m1"])
    if match["h0"] is None:
        begin, end = 0, DAY_MINUTES
    if max(begin, end) > DAY_MINUTES or begin in {end, DAY_MINUTES}:
        raise ValueError(f'no time is within {text!r} (such as "Mo-Fr 8-18", "22-6")')
    if end <= begin:
        end += DAY_MINUTES
    bits = 0
    for day in _days((match["days"] or "mo-su").lower()):
        first = ((1 << (end - begin)) - 1) << (day * DAY_MINUTES + begin)
        bits |= (first & WHOLE_WEEK) | (first >> WEEK_MINUTES)
    return bits


def _whole(text: str) -> float:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError("not a number")
    return float(text)


def _interval(
    text: str, read: Callable[[str], float], such_as: str, least: float
) -> Interval:
    match = re.fullmatch(r"\s*(<=|>=|<|>)?\s*([^-<>=\s]+)\s*(?:-\s*(\S+)\s*)?", text)
    if not match or (match[1] and match[3]):
        raise ValueError(f"not a range: {text!r} (such as {such_as})")
    try:
        first = read(match[2])
        last = read(match[3]) if match[3] else first
    except ValueError:
        raise ValueError(f"not a range: {text!r} (such as {such_as})") from None
    low, high = {
        None: (first, last),
        "<": (least, math.nextafter(first, -math.inf)),
        "<=": (least, first),
        ">": (math.nextafter(first, math.inf), math.inf),
        ">=": (first, math.inf),
    }[match[1]]
    if max(low, least) > high:
        raise ValueError(f"nothing is within {text!r} (such as {such_as})")
    return low, high


def _minutes(hours: str | None, minutes: str | None) -> int:
    part = int(minutes or 0)
    # 60 or more minutes are invalid: return a time beyond the day, which is refused.
    return int(hours or 0) * 60 + part if part < 60 else 2 * DAY_MINUTES


def _days(text: str) -> set[int]:
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin = _DAYS.index(first)
        count = (_DAYS.index(last or first) - begin) % 7 + 1
        days.update((begin + n) % 7 for n in range(count))
    return days
