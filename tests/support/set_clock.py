# SPDX-License-Identifier: MIT
"""A clock that stands until a test sets it."""

from __future__ import annotations


class SetClock:
    """Returns `now`, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
