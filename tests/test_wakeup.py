# SPDX-License-Identifier: MIT
"""One waits, anybody rings."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from burst.runtime.clock import Clock
from burst.wakeup import WakeUp

# Nobody waits as long: a test that does has its wakeup not heard.
LONG_S = 60.0


@pytest.fixture
def wakeup() -> Iterator[WakeUp]:
    clock = Clock()
    began = clock()
    yield WakeUp()
    assert clock() - began < LONG_S


def test_who_waits_is_woken(wakeup: WakeUp) -> None:
    ringer = threading.Timer(0.01, wakeup.wake)
    ringer.start()
    wakeup.wait(LONG_S)
    ringer.join()


def test_a_ring_from_before_counts_and_only_once(wakeup: WakeUp) -> None:
    wakeup.wake()
    wakeup.wake()
    wakeup.wait(LONG_S, gather=0.001)
    wakeup.wait(0.0)
    wakeup.wait(-1.0)


def test_ringing_never_blocks(wakeup: WakeUp) -> None:
    for _ in range(200_000):
        wakeup.wake()
    wakeup.wait(LONG_S)


def test_a_signal_handler_may_ring(wakeup: WakeUp) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: wakeup.wake())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        wakeup.wait(LONG_S)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_one_may_wait_without_end(wakeup: WakeUp) -> None:
    wakeup.wake()
    wakeup.wait(float("inf"))
