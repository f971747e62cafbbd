# SPDX-License-Identifier: MIT
"""What is due in a replay, and when."""

from __future__ import annotations

import enum
import heapq
import math
from collections.abc import Iterator


class Due(enum.IntEnum):
    """What happens. At one time in this order; then jobs are submitted."""

    END = 0
    """A job ends; the number is the job's, as of ASK and MONEY."""
    IDLE = 1
    """A burst may have been idle for long enough; the number is the burst's."""
    GONE = 2
    """Nothing of a burst is left."""
    MONEY = 3
    """The next day, week or month of a budget begins."""
    ASK = 4
    """A job has tried own nodes for long enough."""
    LATE = 5
    """Some job should have started; the number is that of the judgement before."""


class EventQueue:
    """Events in the order of their times, in seconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Due, int]] = []

    @property
    def next_at(self) -> float:
        """When the next one is due; math.inf if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def push(self, at: float, what: Due, number: int) -> None:
        """Add one."""
        heapq.heappush(self._heap, (at, what, number))

    def pop(self, at: float) -> Iterator[tuple[Due, int]]:
        """Take and yield all that are due at that time, also those added meanwhile."""
        while self._heap and self._heap[0][0] == at:
            _, what, number = heapq.heappop(self._heap)
            yield what, number
