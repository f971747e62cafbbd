# SPDX-License-Identifier: MIT
"""Waits for something that a test cannot be told of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

HANG_S = 600.0
"""A bound that only a hang reaches, however busy the machine is."""
_PAUSE_S = 0.05


def wait_until(
    holds: Callable[[], object],
    what: Callable[[], object] | str,
    limit: float = HANG_S,
    pause: float = _PAUSE_S,
) -> None:
    """Poll until it holds. Fails after `limit` seconds.

    The pause is between two looks: longer where one starts programs. `what` was waited
    for, or returns what is to be seen instead.
    """
    ends = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < ends, f"waited {limit:g} s for {_said(what)}"
        time.sleep(pause)


def growing_limits(first: float = 0.25) -> Iterator[float]:
    """Give limits for what must be given up, each twice the one before.

    On a busy machine what must happen within a limit may take longer than the first.
    """
    limit = first
    while limit < HANG_S:
        yield limit
        limit *= 2
    raise AssertionError("it did not happen within any limit")


def _said(what: Callable[[], object] | str) -> object:
    return what if isinstance(what, str) else what()
