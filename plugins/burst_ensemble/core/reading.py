# SPDX-License-Identifier: MIT
"""A member as it was read, and what is counted of its jobs.

Mean and variance by Welford's method (Technometrics 4, 1962); quartiles and the median
distance from the median of the latest 32 values, which are kept.
"""

from __future__ import annotations

import statistics
from typing import Literal

import msgspec

from burst_ensemble.algorithm import JobTally, MemberReading, Spread

JobEvent = Literal["submit", "start", "finish", "exception"]
"""What is counted of a job, in the words of its eventlog (RFC 21). `exception`: it has
ended, and its result is not `completed`; `finish` is counted only if it ran."""


class SizedReading(MemberReading, frozen=True, kw_only=True):
    """A member that can be read. One that cannot has none: nothing is done to it."""

    size: int = 0
    """Nodes that it would have once nothing is being made or drained any more."""


LATEST = 32
"""Values that are kept."""


def with_value(spread: Spread, value: float) -> Spread:
    """Return it with one value more."""
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
    """Return it with one event more.

    `took`: of `start` seconds since submit, of `finish` since start. `success` is of
    `finish`: whether the job's result is `completed`. `failed` is of `exception`:
    whether the job failed before it started, and has no finish.
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
