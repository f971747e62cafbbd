# SPDX-License-Identifier: MIT
"""Which bursts take longer to end than they should."""

from __future__ import annotations

from burst.model.burst import Burst

_LEASE_GRACE_S = 300.0
"""Past its lease a provider ends a burst by itself, which takes a moment, too."""


def is_overdue(burst: Burst) -> bool:
    """Tell whether it was reported that draining or deleting it takes too long."""
    if not burst.live:
        return False
    told = (event.timestamp for event in burst.events if event.name == "overdue")
    return any(at >= burst.since for at in told)


def is_past_lease(burst: Burst, now: float) -> bool:
    """Tell whether something may be left of it long after its lease has ended."""
    end = burst.lease.end
    return burst.live and 0 < end < now - _LEASE_GRACE_S
