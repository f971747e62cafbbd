# SPDX-License-Identifier: MIT
"""Wakes one waiting thread, from any thread and from a signal handler.

A signal handler must not set a threading.Event: if it interrupts a thread that is about
to enter `wait`, both need the Event's lock. A pipe has no lock.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

# Seconds. select(2) takes no infinite timeout; a thread woken early waits again.
_LONGEST = 86400.0


class WakeUp:
    """Any thread or signal handler calls `wake`; one thread calls `wait`."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wake(self) -> None:
        """End the present `wait`, or the next one."""
        # If the pipe is full, the thread is woken in any case.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """Return a descriptor that is readable between a `wake` and the next `wait`."""
        return self._reader

    def wait(self, seconds: float, gather: float = 0.0) -> None:
        """Wait for `wake`, for at most `seconds`; an earlier `wake` counts.

        Then wait `gather` seconds more, so that events that come together cause only
        one return.
        """
        pause = max(0.0, min(seconds, _LONGEST))
        ready, _, _ = select.select([self], [], [], pause)
        if ready:
            time.sleep(gather)
            os.read(self._reader, 65536)


def on_signals(act: Callable[[], None], *numbers: signal.Signals) -> None:
    """Have these signals call `act`, which may `wake`. Call it in the main thread."""
    for number in numbers:
        signal.signal(number, lambda _, __: act())
