# SPDX-License-Identifier: MIT
"""Jobs that have a part of the nodes they need, of which the rest cannot be had.

Such a job cannot start, so it stays held and its nodes are paid for nothing. Past
`[deadlines] complete` they are given back, and the job is left without any for as
long, twice as long each time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.placement.capacity import is_up
from burst.core.records import Transaction
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

_MOST_DOUBLINGS = 6


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one job. It is not in the store: a restart begins anew."""

    since: float | None = None
    """Since when the rest could not be had; None while it has no part, or all."""
    returned: int = 0
    """How often its part was given back."""
    until: float = 0.0
    """It gets no further part before then; seconds since the epoch."""


def update_shortfalls(
    tx: Transaction,
    before: Mapping[JobId, Shortfall],
    verdicts: Mapping[JobId, Decision],
    settings: Settings,
    still_refused: Container[JobId] = (),
) -> Mapping[JobId, Shortfall]:
    """Return what is known now of jobs that lack nodes; give back what took too long.

    `verdicts` are those of this tick, whose new bursts are in the transaction by now;
    `still_refused` are jobs whose refusal stands, which were not looked at again.
    """
    bursts_of = tx.bursts_by_job()
    limit = settings.deadlines.complete
    found: dict[JobId, Shortfall] = {}
    for job, known in before.items():
        bursts = bursts_of.get(job, ())
        if job not in verdicts and job not in still_refused:
            continue
        # The rest may be on its way again, and fail again: that is no new beginning.
        since = known.since if bursts and not all(map(is_up, bursts)) else None
        found[job] = msgspec.structs.replace(known, since=since)
    for job in bursts_of.keys() & verdicts.keys():
        reason = verdicts[job].reason
        if not reason.about_job.refused and reason is not Reason.RESERVED:
            continue
        known = before.get(job, Shortfall())
        since = tx.now if known.since is None else known.since
        found[job] = msgspec.structs.replace(known, since=since)
        if tx.now - since > limit:
            _give_back(tx, job, bursts_of[job], limit)
            longer = limit * 2.0 ** min(known.returned, _MOST_DOUBLINGS)
            found[job] = Shortfall(returned=known.returned + 1, until=tx.now + longer)
    return {job: known for job, known in found.items() if known != Shortfall()}


def _give_back(
    tx: Transaction, job: JobId, bursts: Sequence[Burst], limit: float
) -> None:
    """Have a job count on its bursts no more; those that nobody needs then end."""
    note = f"the rest of its nodes could not be had within {format_fsd(limit)}"
    for burst in bursts:
        tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})
