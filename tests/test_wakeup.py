# SPDX-License-Identifier: MIT
"""One waits, anybody rings."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from burst.runtime.clock import Clock
from burst.wakeup import Bell

# Nobody waits as long: a test that does has its bell not heard.
LONG_S = 60.0


@pytest.fixture
def bell() -> Iterator[Bell]:
    clock = Clock()
    began = clock()
    yield Bell()
    assert clock() - began < LONG_S


def test_who_waits_is_woken(bell: Bell) -> None:
    ringer = threading.Timer(0.01, bell.ring)
    ringer.start()
    bell.wait(LONG_S)
    ringer.join()


def test_a_ring_from_before_counts_and_only_once(bell: Bell) -> None:
    bell.ring()
    bell.ring()
    bell.wait(LONG_S, gather=0.001)
    bell.wait(0.0)
    bell.wait(-1.0)


def test_ringing_never_blocks(bell: Bell) -> None:
    for _ in range(200_000):
        bell.ring()
    bell.wait(LONG_S)


def test_a_signal_handler_may_ring(bell: Bell) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: bell.ring())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        bell.wait(LONG_S)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_clock_goes_on() -> None:
    clock = Clock()
    first = clock()
    assert 0 <= clock() - first < LONG_S


def test_one_may_wait_without_end(bell: Bell) -> None:
    bell.ring()
    bell.wait(float("inf"))
