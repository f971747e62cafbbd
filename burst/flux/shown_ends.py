# SPDX-License-Identifier: MIT
"""The jobs that have ended and are still shown.

A job's end has to be seen once. So the time for which it is shown begins when an
observation has succeeded that showed it: the lead may be unreadable for long.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from itertools import takewhile

ENDED_KEPT_S = 60.0
"""How long an ended job is still shown, after an observation has first shown it."""


class ShownEnds:
    """The ended jobs by number, those that ended first at the beginning."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, float] = OrderedDict()
        """When an observation first showed each; math.inf for the last ones, which none
        has shown yet."""
        self._showing: list[int] = []
        """Those that are shown for the first time."""

    def __iter__(self) -> Iterator[int]:
        return iter(self._seen)

    def add(self, job: int) -> None:
        """Add a job that has ended."""
        self._seen.setdefault(job, math.inf)

    def show(self) -> None:
        """Note that all are shown to an observation, which may still fail."""
        # The last ones: there may be many others, at each tick.
        self._showing = list(
            takewhile(lambda job: self._seen[job] == math.inf, reversed(self._seen))
        )

    def note_seen(self, now: float) -> None:
        """Note that this observation succeeded."""
        for job in self._showing:
            self._seen[job] = now
        self._showing = []

    def pop_old(self, now: float) -> Iterator[int]:
        """Remove and yield the jobs that are not to be shown any more."""
        before = now - ENDED_KEPT_S
        while self._seen and next(iter(self._seen.values())) <= before:
            yield self._seen.popitem(last=False)[0]
