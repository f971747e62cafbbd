# SPDX-License-Identifier: MIT
"""How long conditions have lasted that a provider finds at every look."""

from __future__ import annotations

from collections.abc import Callable


class Lasting:
    """One condition of bursts: since when each look has found it. In memory only."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def seconds(self, burst_id: str) -> float:
        """Note that the condition is found now; return for how long it has been."""
        now = self._clock()
        # Not later than now: the clock may have been set back.
        since = self._since[burst_id] = min(now, self._since.get(burst_id, now))
        return now - since

    def end(self, burst_id: str) -> None:
        """Note that the condition is not found, or that the burst is gone."""
        self._since.pop(burst_id, None)
