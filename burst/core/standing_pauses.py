# SPDX-License-Identifier: MIT
"""Decides when a standing minimum gets no further burst for a while.

An offer is set aside if its bursts do not come online. It is not set aside if they come
online and fail soon afterwards, for example because the cloud takes the nodes back at
once. Jobs bound how many such bursts are made for them; for a standing minimum nothing
else does.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

from burst.config import LimitSettings
from burst.core.provider_health import MOST_TIMES
from burst.core.records import RecordsView
from burst.core.standing import StandingMinimum
from burst.model.backoff import backoff
from burst.model.burst import Burst, Result, State
from burst.model.decision import clock_time
from burst.model.event import Event


class StandingPause(NamedTuple):
    """A pause of a standing minimum: why, and until when."""

    failures: int
    """How many times in a row its bursts failed."""
    why: str
    until: float

    def text(self) -> str:
        """Return it as a sentence without a full stop."""
        return (
            f"its last {self.failures} bursts failed soon after they were online:"
            f" {self.why}; another one is made from {clock_time(self.until)} on"
        )


def standing_pause(
    records: RecordsView, minimum: StandingMinimum, limits: LimitSettings
) -> StandingPause | None:
    """Return the pause after several failures in a row; None after one or none.

    After the second failure it is `[limits] cooldown`; after each further one it is
    twice as long.
    """
    ended = [
        burst
        for burst in records.bursts.values()
        if burst.state in (State.REAP, State.INACTIVE)
        if burst.lease.standing and minimum.has(burst.lease)
    ]
    latest = sorted(ended, key=lambda each: each.lease.created, reverse=True)
    soon = functools.partial(_failed_soon, limits=limits)
    failed = list(itertools.takewhile(soon, latest))
    # Bursts that were made at the same time, in several slots, count once.
    failures = len({burst.lease.created for burst in failed})
    if failures < 2:
        return None
    longest = limits.cooldown * MOST_TIMES
    ends = (_events(burst, "exception")[-1] for burst in failed)
    last = max(ends, key=lambda event: event.timestamp)
    until = last.timestamp + backoff(limits.cooldown, failures - 1, longest)
    return StandingPause(failures, last.context.get("note", ""), until)


def _failed_soon(burst: Burst, limits: LimitSettings) -> bool:
    """Tell whether a burst failed soon after it was online, and served no job."""
    if burst.served or burst.result not in (Result.FAILED, Result.RECLAIMED):
        return False
    online, ends = _events(burst, "online"), _events(burst, "exception")
    if not (online and ends):
        return False
    return ends[-1].timestamp - online[0].timestamp < limits.cooldown


def _events(burst: Burst, name: str) -> list[Event]:
    return [event for event in burst.events if event.name == name]
