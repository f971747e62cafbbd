# SPDX-License-Identifier: MIT
"""The figures of a report, for its page and for the terminal, and their texts."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


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


Row = Mapping[str, Any]
FAILED = ("failed", "timeout", "reclaimed")
"""Results of bursts that did not end as they should."""


class Waits(msgspec.Struct, frozen=True):
    """The waits of jobs that ran on bursts, and their forecast waits for own nodes.

    All but the counts are in seconds.
    """

    jobs: int
    """How many jobs have started."""
    median: float
    slow: float
    """The wait that nine of ten jobs do not exceed."""
    known: int
    """How many of the jobs have a forecast of their start on own nodes."""
    median_known: float
    """The median wait of the jobs with a forecast; 0 without any."""
    median_here: float
    """The median wait that was forecast for own nodes; 0 without any."""
    saved: float
    """The sum of the forecast waits less the sum of the waits of these jobs."""


def waits_of(found: Row) -> Waits | None:
    """Return how long jobs waited; None if none has started."""
    started = [job for job in found["jobs"] if job["started"] is not None]
    if not started:
        return None
    waited = sorted(map(wait, started))
    known = [job for job in started if job["here"] is not None]
    with_bursts = sorted(map(wait, known))
    here = sorted(map(wait_here, known))
    return Waits(
        jobs=len(started),
        median=quantile(waited, 0.5),
        slow=quantile(waited, 0.9),
        known=len(known),
        median_known=quantile(with_bursts, 0.5) if known else 0.0,
        median_here=quantile(here, 0.5) if known else 0.0,
        saved=sum(here) - sum(with_bursts),
    )


def wait(job: Row) -> float:
    """Return how long a job that has started waited, in seconds."""
    return max(0.0, float(job["started"] - job["submitted"]))


def wait_here(job: Row) -> float:
    """Return how long a job was expected to wait for own nodes, in seconds."""
    return max(0.0, float(job["here"] - job["submitted"]))


def failures(found: Row) -> list[Row]:
    """Return the bursts that did not end as they should, the latest first."""
    return [row for row in reversed(found["bursts"]) if row["result"] in FAILED]


def results(found: Row) -> Counter[str]:
    """Return how many bursts ended with each result, and how many are live."""
    return Counter(
        "live" if row["state"] != "inactive" else row["result"] or "result not known"
        for row in found["bursts"]
    )


def settled_since(found: Row) -> str:
    """Return from which day on money counts if that is earlier than the report begins.

    It is empty if not. Money of old days is known by month only.
    """
    day = str(found["cost"]["settled_since"])
    return "" if day == found["since"] else day


def sums(found: Row) -> dict[str, float]:
    """Return the sums of all months, by kind of money."""
    total: Counter[str] = Counter()
    for month in found["cost"]["months"]:
        total.update({k: v for k, v in month.items() if k != "month"})
    return {key: float(value) for key, value in total.items()}
