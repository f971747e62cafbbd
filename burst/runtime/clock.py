# SPDX-License-Identifier: MIT
"""Time since the epoch that never goes back while the process runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

STEP_S = 2.0
"""If the system clock is off by more than this many seconds, it counts as stepped: it
was set, or the machine was suspended."""
_APART_S = 0.1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockMark(msgspec.Struct, frozen=True):
    """Identifies the clock of some times; comparable within one boot of a machine."""

    boot: str
    """The boot's id, random(4) of Linux; empty if it is not known."""
    offset: float
    """Seconds since the epoch at which the monotonic clock was 0."""

    def step_to(self, other: ClockMark) -> float:
        """Return by how many seconds the system clock was set between the two marks.

        Return 0 if it was not set, and if the marks are from two boots or machines,
        where a step cannot be known.
        """
        if not self.boot or self.boot != other.boot:
            return 0.0
        step = other.offset - self.offset
        return step if abs(step) > STEP_S else 0.0


def clock_offset(
    wall: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> float:
    """Return the seconds since the epoch at which the monotonic clock was 0.

    Both clocks are read again if other processes ran between the readings: the time
    that passed would look like a step of the system clock.
    """
    while True:
        before, now, after = monotonic(), wall(), monotonic()
        if after - before < _APART_S:
            return now - after


class Clock:
    """Seconds since the epoch: the system clock at the start plus monotonic time since.

    By the system clock alone, deadlines would be late after it was set back, and every
    burst would end at once after it was set ahead. So a session uses one Clock. After a
    step a new session begins, which moves the times in its records by the step
    (`clock_steps`).
    """

    def __init__(self) -> None:
        boot = ""
        with suppress(OSError):  # not Linux
            boot = _BOOT_ID.read_text().strip()
        self.mark = ClockMark(boot, clock_offset())

    def __call__(self) -> float:
        """Return the time now."""
        return self.mark.offset + time.monotonic()

    def step(self) -> float:
        """Return by how much the system clock was set since the start, in seconds."""
        now = ClockMark(self.mark.boot or "?", clock_offset())
        return msgspec.structs.replace(self.mark, boot=now.boot).step_to(now)
