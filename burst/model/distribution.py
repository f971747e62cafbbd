# SPDX-License-Identifier: MIT
"""Counts durations by length, in the classes of a metric's histogram."""

from __future__ import annotations

import bisect

import msgspec

BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
"""Upper ends of the classes in seconds: a tick takes milliseconds, a cluster minutes.
One more class has all durations longer than the last."""


class Distribution(msgspec.Struct, frozen=True):
    """Durations that were counted. Immutable, so that any thread may read it."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """The number of durations in each class; the counts are not cumulative."""
    total: float = 0.0
    """The sum of all durations, in seconds."""

    def plus(self, seconds: float) -> Distribution:
        """Return the counts with one more duration; one below 0 counts as 0."""
        length = max(0.0, seconds)
        at = bisect.bisect_left(BOUNDS, length)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Distribution(counts, self.total + length)

    @property
    def number(self) -> int:
        """The number of durations that were counted."""
        return sum(self.counts)
