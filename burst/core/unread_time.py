# SPDX-License-Identifier: MIT
"""Postpones deadlines by the time in which the lead was not read.

The lead hung, or the daemon was stopped (SIGSTOP). Meanwhile followers could not join
and jobs could not start, or nobody saw it: so no deadline runs in that time. What
depends only on the clock, such as the end of a lease, does not change.
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
    """Move the start of each wait by the seconds in which the lead was not read.

    Nothing is changed if the number of seconds is not known (infinity).
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
    """Return the last tick's cache, with times moved as by `postpone`."""
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
    """Return the new begin of each wait of a burst, as the context of an event.

    The context has the resulting times, not the changes, so that the last of several
    such events yields the same burst as all of them.
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
    return {**later, "note": f"{what}; deadlines were paused meanwhile"}
