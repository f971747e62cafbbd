# SPDX-License-Identifier: MIT
"""A member as it was read, and statistics about its jobs.

Mean and variance use Welford's method (Technometrics 4, 1962). Quartiles and the median
distance from the median are those of the latest 32 values, which are kept.
"""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec

from burst_ensemble.algorithm import JobTally, MemberReading, Spread

JobEvent = Literal["submit", "start", "finish", "exception"]
"""The events of a job that are counted, in the words of its eventlog (RFC 21).
`exception`: it ended, and its result is not `completed`; `finish` is counted only if
it ran."""


class SizedReading(MemberReading, frozen=True, kw_only=True):
    """The reading of a member. One that cannot be read has none and is left alone."""

    size: int = 0
    """Nodes that it will have when all that is being made or drained is done."""


LATEST = 32
"""The number of values that a Spread keeps."""


def with_value(spread: Spread, value: float) -> Spread:
    """Return the spread with one value more."""
    count = spread.count + 1
    mean = spread.mean + (value - spread.mean) / count
    # The sum of the squared distances from the mean.
    squares = spread.variance * max(0, spread.count - 1)
    squares += (value - spread.mean) * (value - mean)
    latest = (*spread.latest[-LATEST + 1 :], round(value, 3))
    return Spread(
        count=count,
        mean=mean,
        variance=squares / (count - 1) if count > 1 else 0.0,
        min=min(spread.min, value) if spread.count else value,
        max=max(spread.max, value) if spread.count else value,
        iqr=_iqr(latest),
        mad=_mad(latest),
        latest=latest,
    )


def with_event(
    tally: JobTally,
    event: JobEvent,
    took: float = 0.0,
    *,
    success: bool = False,
    failed: bool = False,
) -> JobTally:
    """Return the tally with one event more.

    `took`: for `start`, the seconds since submit; for `finish`, those since start.
    `success`: for `finish`, whether the job's result is `completed`. `failed`: for
    `exception`, whether the job failed before it started, and so has no finish.
    """
    changes: dict[str, object] = {
        "events": {**tally.events, event: tally.events.get(event, 0) + 1}
    }
    if event == "start":
        changes["pending"] = with_value(tally.pending, took)
    elif event == "finish":
        changes["duration"] = with_value(tally.duration, took)
    if event == "finish" or failed:
        ended = "success" if success else "failed"
        changes |= {ended: getattr(tally, ended) + 1, "finished": tally.finished + 1}
    return msgspec.structs.replace(tally, **changes)


def _iqr(values: tuple[float, ...]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _mad(values: tuple[float, ...]) -> float:
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)
