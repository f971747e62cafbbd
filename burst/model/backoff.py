# SPDX-License-Identifier: MIT
"""Exponential back-off: pauses that double with each failure in a row."""

from __future__ import annotations

import math

# A longer pause exceeds the life of any process; the bound keeps floats from overflow.
_MOST_DOUBLINGS = 40


def backoff(first: float, failures: int, longest: float = math.inf) -> float:
    """Return the pause after a number of failures in a row, in seconds.

    It is `first` after one failure (or none), twice as long after each further one, and
    never more than `longest`.
    """
    doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
    return min(longest, first * 2.0**doublings)
