# SPDX-License-Identifier: MIT
"""Times and durations as batch systems write them.

A time without a zone is local time, as `sacct` prints it: that of the process, so `TZ`
says where the log was written. Sources: sacct(1), `slurm_make_time_str` and
`time_str2secs` of Slurm; pbs_resources(7).
"""

from __future__ import annotations

import datetime
import functools

from burst_replay.collected_jobs import NoTime
from burst_replay.trace import LONGEST_S

_NONE = frozenset(
    ("", "0", "unknown", "none", "n/a", "(null)", "null", "-", "nan", "nat", "invalid")
)
_NO_LIMIT = _NONE | {"unlimited", "infinite", "partition_limit", "not_set", "-1"}
_MILLISECONDS_FROM = 1e11
"""In seconds that is the year 5138: times as large count milliseconds, as those of
Univa Grid Engine do, and a thousand times larger ones microseconds."""
_NEVER = 0xFFFFFFFE
"""NO_VAL of Slurm, and INFINITE is one more."""
_UNITS = [86400.0, 3600.0, 60.0, 1.0]
# What `SLURM_TIME_FORMAT` is set to, and what other programs make of times.
_FORMATS = (
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d-%H:%M:%S",
    "%Y-%m-%d-%H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%d %b %Y %H:%M:%S",
)


def is_known(text: str) -> bool:
    """Tell whether a field has a value: `Unknown`, `None` and the like are none."""
    return text.lower() not in _NONE


def parse_moment(text: str) -> float:
    """Return seconds since the epoch. Raises NoTime."""
    # What nearly all are, read in a tenth of the time.
    if len(text) == 19 and text[4] == "-" and text[13] == text[16] == ":":
        try:
            minutes, seconds = int(text[14:16]), int(text[17:])
            if 0 <= minutes < 60 and 0 <= seconds <= 60:
                return _local_hour(text[:13]) + 60.0 * minutes + seconds
        except (OverflowError, ValueError) as error:
            raise NoTime(f"{text!r} is no time") from error
    try:
        return from_epoch(float(text))
    except ValueError:
        return _parse_date(text)


def from_epoch(number: float) -> float:
    """Return seconds since the epoch of a count of seconds or less. Raises NoTime."""
    while number >= _MILLISECONDS_FROM and number < LONGEST_S * 1e6:
        number /= 1000.0
    # Also false for NaN.
    if not 0 <= number < LONGEST_S:
        raise NoTime("a time that cannot be")
    return number


@functools.lru_cache(65536)
def parse_duration(text: str, unit: float = 1.0) -> float:
    """Return seconds of `[days-]hours:minutes:seconds`, `minutes:seconds`, or a number,
    which counts `unit` seconds. Raises NoTime.
    """
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    try:
        numbers = [float(part) for part in parts]
        if dash:
            # Days are followed by hours, with or without the rest.
            numbers.insert(0, float(days))
            units = _UNITS[: len(numbers)]
        else:
            units = _UNITS[-len(parts) :] if len(parts) > 1 else [unit]
        seconds = sum(n * u for n, u in zip(numbers, units, strict=True))
    except ValueError as error:
        raise NoTime(f"{text!r} is no duration") from error
    if not 0 <= seconds < LONGEST_S or any(number < 0 for number in numbers):
        raise NoTime(f"{text!r} is no duration")
    return seconds


def parse_limit(text: str, unit: float = 1.0) -> float:
    """Return seconds of a time limit, 0 for none. Raises NoTime."""
    if text.lower() in _NO_LIMIT:
        return 0.0
    if text.isdecimal() and int(text[:20]) >= _NEVER:
        return 0.0
    return parse_duration(text, unit)


@functools.lru_cache(4096)
def _local_hour(text: str) -> float:
    """Return when an hour such as `2024-01-31T12` began. Raises ValueError."""
    return datetime.datetime.fromisoformat(f"{text}:00:00").timestamp()


def _parse_date(text: str) -> float:
    try:
        return from_epoch(_date(text).timestamp())
    except (OverflowError, ValueError) as error:
        raise NoTime(f"{text!r} is no time with a year") from error


def _date(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        for form in _FORMATS:
            try:
                return datetime.datetime.strptime(text, form)
            except ValueError:
                continue
        raise
