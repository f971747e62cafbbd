# SPDX-License-Identifier: MIT
"""How often one user may call: a token bucket (ITU-T I.371's leaky bucket, reversed).

A user saves up calls at a steady rate, up to so many, and each call takes some. Amounts
are in calls, times in seconds of any clock that only goes forward.
"""

from __future__ import annotations

import msgspec


class CallRate(msgspec.Struct, frozen=True):
    """What one user may do."""

    per_second: float
    """Calls that a user gets for each second; above 0."""
    at_once: float
    """The most that a user can save up; at least 1."""


class SavedCalls(msgspec.Struct, frozen=True):
    """What one user had left at one moment."""

    calls: float
    at: float


def take_calls(
    saved: SavedCalls | None, rate: CallRate, cost: float, now: float
) -> tuple[SavedCalls, float]:
    """Return what a user has left after a call, and how long to wait for it.

    `saved` is None for a user who has not called for long. Where the wait is 0 the call
    is taken. Else nothing is taken, and it is in how many seconds it would be. A call
    that costs more than a user can ever save up costs all that.
    """
    left = rate.at_once
    if saved is not None:
        passed = max(0.0, now - saved.at)
        left = min(left, saved.calls + passed * rate.per_second)
    cost = min(cost, rate.at_once)
    if left < cost:
        return SavedCalls(left, now), (cost - left) / rate.per_second
    return SavedCalls(left - cost, now), 0.0
