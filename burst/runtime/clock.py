# SPDX-License-Identifier: MIT
"""Time since the epoch that never goes back while the process runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

STEP_S = 2.0
"""The system clock was set, or the machine suspended, where it is off by so much."""
_APART_S = 0.1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockMark(msgspec.Struct, frozen=True):
    """By which clock times were written: comparable within one boot of a machine."""

    boot: str
    """random(4) of Linux; empty where it is not known."""
    offset: float
    """Seconds since the epoch at which the monotonic clock was 0."""

    def step_to(self, other: ClockMark) -> float:
        """Return by how many seconds the system clock was set since, 0 if it was not.

        Nothing is known of a step between two boots, or on another machine.
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

    Both are read again if other processes had the processor between them: the time
    that passed would be taken for a step of the system clock.
    """
    while True:
        before, now, after = monotonic(), wall(), monotonic()
        if after - before < _APART_S:
            return now - after


class Clock:
    """Seconds since the epoch: the system clock at the start plus monotonic time since.

    If the system clock is set back, deadlines would be late by as much; if it is set
    ahead, every burst would end at once. So a session goes by one of these, and is
    followed by another after a step, whose records are moved by it (`clock_steps`).
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
