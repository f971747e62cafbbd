# SPDX-License-Identifier: MIT
"""Signals that end a command which has something to take down."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise KeyboardInterrupt once, so that nothing is left.

    Use it in the main thread. A signal that is ignored, as by nohup(1), stays so.
    """
    before = {each: signal.getsignal(each) for each in _ENDS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(number: int, _: FrameType | None) -> None:
    # Who ends a session may send both, and again, while a burst is taken down.
    for each in _ENDS:
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGHUP:
        # The terminal is gone, so that writing to it would be an error.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.close(nothing)
    raise KeyboardInterrupt
