# SPDX-License-Identifier: MIT
"""What was read of a member, and how long its jobs took, in a few numbers.

Mean and variance by Welford's method (Technometrics 4, 1962); quartiles and the median
distance from the median of the latest 32 values, which are kept.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
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


class Running(msgspec.Struct, frozen=True):
    """A mean that is carried on: values so far, and the latest of them."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of the squared distances from the mean."""
    min: float = 0.0
    max: float = 0.0
    latest: tuple[float, ...] = ()

    def add(self, value: float) -> Running:
        """Return it with one value more."""
        count = self.count + 1
        mean = self.mean + (value - self.mean) / count
        return Running(
            count,
            mean,
            self.squares + (value - self.mean) * (value - mean),
            min(self.min, value) if self.count else value,
            max(self.max, value) if self.count else value,
            (*self.latest[-LATEST + 1 :], round(value, 3)),
        )

    def spread(self) -> Spread:
        """Return it as algorithms see it."""
        if not self.count:
            return Spread()
        return Spread(
            count=self.count,
            mean=self.mean,
            variance=self.squares / (self.count - 1) if self.count > 1 else 0.0,
            min=self.min,
            max=self.max,
            iqr=_iqr(self.latest),
            mad=_mad(self.latest),
        )


class GroupStatistics(msgspec.Struct, frozen=True):
    """What is kept of jobs in one member: of a group, or of all."""

    success: int = 0
    failed: int = 0
    duration: Running = Running()
    pending: Running = Running()
    events: Mapping[str, int] = {}

    def add(
        self,
        event: JobEvent,
        took: float = 0.0,
        *,
        success: bool = False,
        failed: bool = False,
    ) -> GroupStatistics:
        """Return it with one event more.

        `took`: of `start` seconds since submit, of `finish` since start. `success` is
        of `finish`: whether the job's result is `completed`. `failed` is of
        `exception`: whether the job failed before it started, and has no finish.
        """
        changes: dict[str, object] = {
            "events": {**self.events, event: self.events.get(event, 0) + 1}
        }
        if event == "start":
            changes["pending"] = self.pending.add(took)
        elif event == "finish":
            changes["duration"] = self.duration.add(took)
            ended = "success" if success else "failed"
            changes[ended] = getattr(self, ended) + 1
        elif failed:
            changes["failed"] = self.failed + 1
        return msgspec.structs.replace(self, **changes)

    def tally(self) -> JobTally:
        """Return it as algorithms see it."""
        return JobTally(
            finished=self.success + self.failed,
            success=self.success,
            failed=self.failed,
            duration=self.duration.spread(),
            pending=self.pending.spread(),
            events=self.events,
        )


def _iqr(values: tuple[float, ...]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def _mad(values: tuple[float, ...]) -> float:
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)
