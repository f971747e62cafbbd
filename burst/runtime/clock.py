# SPDX-License-Identifier: MIT
"""Time since the epoch that never goes back while the process runs."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch: the system clock at the start plus monotonic time since.

    If the system clock is set back, deadlines would be late by as much; if it is set
    ahead, every burst would end at once.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Return the time now."""
        return self._offset + time.monotonic()
