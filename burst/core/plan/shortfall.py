# SPDX-License-Identifier: MIT
"""Jobs that have a part of the nodes they need, and cannot get the rest.

Such a job cannot start, so it stays held and its nodes cost money without use. After
10 minutes (`DeadlineSettings.complete`) they are given back, and the job is left
without any for as long, twice as long each time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from burst.core.plan.capacity import is_up
from burst.core.records import Transaction
from burst.model.backoff import backoff
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

# A job is left alone for at most this many times the limit of its wait.
_MOST_TIMES = 64


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """The shortfall of one job. It is not in the store: a restart begins anew."""

    since: float | None = None
    """Since when it has waited, seconds since the epoch; None while it does not."""
    expired: int = 0
    """How often the wait took longer than its limit."""
    until: float = 0.0
    """It is not tried again before then; seconds since the epoch."""

    def after_wait(self, now: float, limit: float) -> Shortfall:
        """Return the shortfall of a job that waits now, for at most `limit` seconds.

        After the limit the job is left alone for as long, twice as long each time.
        """
        since = now if self.since is None else self.since
        if now - since <= limit:
            return msgspec.structs.replace(self, since=since)
        expired = self.expired + 1
        pause = backoff(limit, expired, longest=limit * _MOST_TIMES)
        return Shortfall(expired=expired, until=now + pause)


def update_shortfalls(
    tx: Transaction,
    before: Mapping[JobId, Shortfall],
    decisions: Mapping[JobId, Decision],
    still_refused: Container[JobId] = (),
) -> Mapping[JobId, Shortfall]:
    """Return the shortfalls of jobs now; give back the nodes of those that expired.

    `decisions` are those of this tick, whose new bursts are in the transaction by now;
    `still_refused` are jobs whose refusal stands, which were not looked at again.
    """
    bursts_of = tx.bursts_by_job()
    limit = tx.settings.deadlines.complete
    found: dict[JobId, Shortfall] = {}
    for job, known in before.items():
        if job not in decisions and job not in still_refused:
            continue
        # The rest may be on its way again, and fail again: the wait goes on meanwhile.
        bursts = bursts_of.get(job, ())
        waits = any(burst.coming or not is_up(burst) for burst in bursts)
        found[job] = known if waits else msgspec.structs.replace(known, since=None)
    for job in bursts_of.keys() & decisions.keys():
        reason = decisions[job].reason
        if not reason.about_job.refused and reason is not Reason.RESERVED:
            continue
        known = before.get(job, Shortfall())
        found[job] = known.after_wait(tx.now, limit)
        if found[job].expired > known.expired:
            _give_back(tx, job, bursts_of[job], limit)
    return {job: known for job, known in found.items() if known != Shortfall()}


def _give_back(
    tx: Transaction, job: JobId, bursts: Sequence[Burst], limit: float
) -> None:
    """Remove a job from its bursts; bursts that nobody needs then end."""
    note = f"the rest of its nodes could not be provided within {format_fsd(limit)}"
    for burst in bursts:
        tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})
