# SPDX-License-Identifier: MIT
"""Time in which the lead was not read, of which nobody knows what happened in it.

The lead hangs, or the daemon was stopped (SIGSTOP). Followers could not join meanwhile
and jobs could not start, or nobody saw it: no deadline runs in that time. What is due
by the clock alone, such as the end of a lease, stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from burst.core.plan.refusal_cache import RefusalCache
from burst.core.plan.shortfall import Shortfall
from burst.core.records import Transaction
from burst.model.burst import Burst
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId

_replace = msgspec.structs.replace


def postpone(tx: Transaction, seconds: float) -> None:
    """Have all that waits have begun later by so many seconds that have just gone by.

    Nothing where it is not known how many they are (infinity).
    """
    if not 0 < seconds < math.inf:
        return
    for burst in tx.live:
        if not burst.quarantined:
            tx.record(burst.id, "unread", _context(burst, seconds, tx.now))
    for job, hold in list(tx.holds.items()):
        letting = hold.letting and min(hold.letting + seconds, tx.now)
        since = min(hold.since + seconds, tx.now)
        tx.holds[job] = _replace(hold, since=since, letting=letting)


def postponed(cache: RefusalCache, seconds: float, now: float) -> RefusalCache:
    """Return what the last tick left, with what waits begun later as in `postpone`."""
    if not 0 < seconds < math.inf:
        return cache
    parts = {
        burst: _replace(part, since=min(part.since + seconds, now))
        for burst, part in cache.idle_parts.items()
    }
    return _replace(
        cache,
        idle_parts=parts,
        shortfalls=_later(cache.shortfalls, seconds, now),
    )


def _later(
    known: Mapping[JobId, Shortfall], seconds: float, now: float
) -> dict[JobId, Shortfall]:
    return {
        job: each
        if each.since is None
        else _replace(each, since=min(each.since + seconds, now))
        for job, each in known.items()
    }


def _context(burst: Burst, seconds: float, now: float) -> dict[str, object]:
    """Return since when it is to count as waiting for each thing that it waits for.

    These say all that follows, and not what changed, so that the last event alone of
    several gives the same burst as all of them.
    """
    resize = burst.resize
    times = {
        "since_at": burst.since,
        "unused_at": burst.unused_since,
        "lost_at": burst.lost_since,
        "resize_at": resize.since if resize else None,
        "called_at": resize.called if resize else None,
    }
    later = {
        name: min(time + seconds, now)
        for name, time in times.items()
        if time is not None
    }
    what = f"the lead was not read for {format_fsd(round(seconds))}"
    return {**later, "note": f"{what}; no deadline ran meanwhile"}
