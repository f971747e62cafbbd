# SPDX-License-Identifier: MIT
"""How many durations there were of each length, in the classes that metrics have."""

from __future__ import annotations

import bisect

import msgspec

BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
"""Upper ends of the classes in seconds: a tick takes milliseconds, a cluster minutes.
What is longer than the last is in a class of its own."""


class Distribution(msgspec.Struct, frozen=True):
    """Durations that were counted. Immutable, so any thread may read it."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """Of each class alone, not of the shorter ones, too."""
    total: float = 0.0
    """The sum of all durations, in seconds."""

    def plus(self, seconds: float) -> Distribution:
        """Return it with one more duration; one below 0 counts as 0."""
        length = max(0.0, seconds)
        at = bisect.bisect_left(BOUNDS, length)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Distribution(counts, self.total + length)

    @property
    def number(self) -> int:
        """How many durations were counted."""
        return sum(self.counts)
