# SPDX-License-Identifier: MIT
"""When the lease of a burst ends, and until when jobs are started on the burst.

No jobs are started on a burst from some time before the end of its lease, so that
running jobs can end: see `drain_time`. Times are seconds since the epoch.
"""

from __future__ import annotations

import math

from burst.config import DeadlineSettings
from burst.model.burst import Lease
from burst.provider import Offer

# What ends in the year 10,000 or later never ends; no date can show it.
_END_OF_TIME = 253_402_300_800.0


def time_left(lead_ends: float, now: float) -> float:
    """Return for how many seconds the lead itself runs; math.inf if that is not known.

    `lead_ends` is `LeadIdentity.ends`, as it was first read. A lead that outlives it
    had its time limit extended.
    """
    return lead_ends - now if lead_ends > now else math.inf


def lease_end(offer: Offer, longest: float, now: float) -> float:
    """Return when a burst of the offer ends if it is made now; 0 for never.

    `longest` is how long a burst may live by the settings and by the end of the lead,
    in seconds, math.inf for ever.
    """
    end = now + min(longest, offer.lifetime or math.inf)
    return 0.0 if end >= _END_OF_TIME else end


def drain_time(created: float, end: float, drain: float) -> float:
    """Return when a burst is drained as its lease ends; math.inf where it never does.

    That is `drain` seconds before the end. If the lease is shorter than twice that,
    jobs get its first half: a burst that is drained as soon as it is online would cost
    money without use.
    """
    if not end:
        return math.inf
    return end - min(drain, (end - created) / 2)


def remaining_run_time(lease: Lease, deadlines: DeadlineSettings, now: float) -> float:
    """Return for how many seconds jobs can run on a live burst, from now on."""
    return drain_time(lease.created, lease.end, deadlines.drain) - now


def offered_run_time(
    offer: Offer, end: float, deadlines: DeadlineSettings, now: float
) -> float:
    """Return for how many seconds jobs can run on a new burst with this lease end."""
    until = drain_time(now, end, deadlines.drain)
    return max(0.0, until - now - offer.join_time)
