# SPDX-License-Identifier: MIT
"""How long a job waited for something, and for how long that is not tried again."""

from __future__ import annotations

import msgspec

from burst.model.backoff import backoff

# A job is left alone for at most this many times the limit of its wait.
_MOST_TIMES = 64


class JobBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one job. It is not in the store: a restart begins anew."""

    since: float | None = None
    """Since when it has waited, seconds since the epoch; None while it does not."""
    expired: int = 0
    """How often the wait took longer than its limit."""
    until: float = 0.0
    """It is not tried again before then; seconds since the epoch."""

    def after_wait(self, now: float, limit: float) -> JobBackoff:
        """Return what is known of a job that waits now, for at most `limit` seconds.

        Past the limit the job is left alone for as long, twice as long each time.
        """
        since = now if self.since is None else self.since
        if now - since <= limit:
            return msgspec.structs.replace(self, since=since)
        expired = self.expired + 1
        pause = backoff(limit, expired, longest=limit * _MOST_TIMES)
        return JobBackoff(expired=expired, until=now + pause)

    def without_wait(self) -> JobBackoff:
        """Return what is known of a job that does not wait now."""
        return msgspec.structs.replace(self, since=None)
