# SPDX-License-Identifier: MIT
"""Wakes one waiting thread, from any thread and from a signal handler.

threading.Event may not be set by a handler that interrupts the thread which is just
entering its `wait`: both would want its lock. A pipe has none.
"""

from __future__ import annotations

import contextlib
import os
import select
import time

# select(2) takes no time without end; who is woken early waits again. In seconds.
_LONGEST = 86400.0


class WakeUp:
    """Rung by anybody, heard by one."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._rung, False)

    def wake(self) -> None:
        """Wake who waits, or who waits next."""
        # A full pipe has been rung often enough.
        with contextlib.suppress(BlockingIOError):
            os.write(self._rung, b"!")

    def wait(self, seconds: float, gather: float = 0.0) -> None:
        """Wait until it rings, or for so long; a ring from before counts.

        Once it rings, `gather` seconds more, so that what comes together is one.
        """
        pause = max(0.0, min(seconds, _LONGEST))
        ready, _, _ = select.select([self._heard], [], [], pause)
        if ready:
            time.sleep(gather)
            os.read(self._heard, 65536)
