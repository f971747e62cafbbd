# SPDX-License-Identifier: MIT
"""The time of day that never goes back while we run."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch, as it was at the start plus what went by since.

    A clock that is set back would make deadlines late by as much, and one that is set
    ahead would end every burst at once.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        """Return the time now."""
        return self._offset + time.monotonic()
