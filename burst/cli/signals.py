# SPDX-License-Identifier: MIT
"""Signals that end a command which has something to take down."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT, so nothing is left.

    After the first of them only a second SIGINT does: who ends a session may send the
    others, and again, while a burst is taken down. Use it in the main thread. A signal
    that is ignored, as by nohup(1), stays so.
    """
    before = {each: signal.getsignal(each) for each in _AFTER_THE_FIRST}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each, handler in _AFTER_THE_FIRST.items():
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, handler)
    if number == signal.SIGINT:
        _expect_ctrl_c(number, frame)
    if number == signal.SIGHUP:
        _leave_terminal(number, frame)
    raise KeyboardInterrupt


def _expect_ctrl_c(number: int, _: FrameType | None) -> None:
    """Have the next SIGINT raise; this one may have come together with another."""
    signal.signal(number, signal.default_int_handler)


def _leave_terminal(_: int, __: FrameType | None) -> None:
    """Write nowhere from now on: to a terminal that is gone it would be an error."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)


def _go_on(_: int, __: FrameType | None) -> None:
    # Unlike SIG_IGN, programs that are started meanwhile do not inherit it.
    return


# What a signal does after the first one.
_AFTER_THE_FIRST = {
    signal.SIGINT: _expect_ctrl_c,
    signal.SIGTERM: _go_on,
    signal.SIGHUP: _leave_terminal,
}
