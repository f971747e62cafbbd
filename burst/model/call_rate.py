# SPDX-License-Identifier: MIT
"""How often one user may call: a token bucket (ITU-T I.371's leaky bucket, reversed).

A user saves up calls at a steady rate, up to a limit, and each call takes some of them.
Amounts are in calls, times in seconds of any clock that only goes forward.
"""

from __future__ import annotations

import msgspec


class CallRate(msgspec.Struct, frozen=True):
    """The rate of calls that one user may make."""

    per_second: float
    """Calls that a user gains per second; above 0."""
    at_once: float
    """The most calls that a user can save up; at least 1."""


class SavedCalls(msgspec.Struct, frozen=True):
    """The calls that one user had left at one moment."""

    calls: float
    at: float


def take_calls(
    saved: SavedCalls | None, rate: CallRate, cost: float, now: float
) -> tuple[SavedCalls, float]:
    """Return the calls a user has left after a call, and the seconds until it may run.

    `saved` is None for a user who has not called for long. If the wait is 0, the call
    is taken. Otherwise nothing is taken, and the call could be taken after the wait. A
    call that costs more than a user can save up costs all that a user can save up.
    """
    left = rate.at_once
    if saved is not None:
        passed = max(0.0, now - saved.at)
        left = min(left, saved.calls + passed * rate.per_second)
    cost = min(cost, rate.at_once)
    if left < cost:
        return SavedCalls(left, now), (cost - left) / rate.per_second
    return SavedCalls(left - cost, now), 0.0
