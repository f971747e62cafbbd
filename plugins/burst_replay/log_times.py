# SPDX-License-Identifier: MIT
"""Parse times, durations and counts as batch systems write them.

A time without a zone is local time, as `sacct` prints it. It is the local time of this
process, so set `TZ` to the zone of the log. A number in JSON is a number here, too.
Sources: sacct(1), `time_str2secs` of Slurm; pbs_resources(7).
"""

from __future__ import annotations

import datetime
import functools

LONGEST_S = 1e12
"""Seconds that no time in a trace reaches."""
_NONE = frozenset(
    ("", "0", "unknown", "none", "n/a", "(null)", "null", "-", "nan", "nat", "invalid")
)
_NO_LIMIT = _NONE | {"unlimited", "infinite", "partition_limit", "not_set", "-1"}
_MILLISECONDS_FROM = 1e11
"""In seconds this is the year 5138: larger times count milliseconds, as in Univa Grid
Engine, and times a thousand times larger count microseconds."""
_NEVER = 0xFFFFFFFE
"""NO_VAL of Slurm; INFINITE is one more."""
_CLOCK = [86400.0, 3600.0, 60.0, 1.0]
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


class NoTime(ValueError):
    """A time is missing or cannot be read: the job is left out as `NO_TIME`."""


def is_known(value: str | float) -> bool:
    """Tell whether a field has a value. 0, `Unknown`, `None` and the like are none."""
    return value.lower() not in _NONE if isinstance(value, str) else bool(value)


def parse_moment(value: str | float) -> float:
    """Return seconds since the epoch. Raises NoTime."""
    try:
        # The form of nearly all times, read in a tenth of the time.
        if isinstance(value, str) and len(value) == 19 and value[13:17:3] == "::":
            minutes, seconds = int(value[14:16]), int(value[17:])
            if 0 <= minutes < 60 and 0 <= seconds <= 60:
                return _local_hour(value[:13]) + 60.0 * minutes + seconds
        try:
            number = float(value)
        except ValueError:
            number = datetime.datetime.fromisoformat(str(value)).timestamp()
    except (OverflowError, ValueError) as error:
        raise NoTime(f"{value!r} is not a time with a year") from error
    while _MILLISECONDS_FROM <= number < LONGEST_S * 1e6:
        number /= 1000.0
    return _possible(number)


@functools.lru_cache(65536)
def parse_duration(value: str | float, unit: float = 1.0) -> float:
    """Return the seconds of `[days-]hours:minutes:seconds`, `minutes:seconds`, or a
    number, which counts units of `unit` seconds. Raises NoTime.
    """
    if not isinstance(value, str):
        return _possible(value * unit)
    days, dash, clock = value.rpartition("-")
    parts = clock.split(":")
    try:
        numbers = [float(part) for part in parts]
        if dash:
            # Hours follow the days, with or without minutes and seconds.
            numbers.insert(0, float(days))
            units = _CLOCK[: len(numbers)]
        else:
            units = _CLOCK[-len(parts) :] if len(parts) > 1 else [unit]
        seconds = sum(n * u for n, u in zip(numbers, units, strict=True))
    except ValueError as error:
        raise NoTime(f"{value!r} is not a duration") from error
    return _possible(seconds)


def parse_limit(value: str | float, unit: float = 1.0) -> float:
    """Return the seconds of a time limit, 0 for none. Raises NoTime."""
    if isinstance(value, str) and (
        value.lower() in _NO_LIMIT or (value.isdecimal() and int(value[:20]) >= _NEVER)
    ):
        return 0.0
    return parse_duration(value, unit)


def parse_count(value: str | float) -> int:
    """Return a number such as `64` or `2K`, 0 for none. Raises ValueError."""
    if not is_known(value):
        return 0
    text = str(value)
    unit = _UNITS.get(text[-1].upper(), 1)
    try:
        return (
            int(text) if text.isdecimal() else int(float(text.rstrip("kKmMgG")) * unit)
        )
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is not a number") from error


@functools.lru_cache(4096)
def _local_hour(text: str) -> float:
    """Return when an hour such as `2024-01-31T12` began. Raises ValueError."""
    return datetime.datetime.fromisoformat(f"{text}:00:00").timestamp()


def _possible(seconds: float) -> float:
    # Also false for NaN.
    if not 0 <= seconds < LONGEST_S:
        raise NoTime("an impossible time")
    return seconds
