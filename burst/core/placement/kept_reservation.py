# SPDX-License-Identifier: MIT
"""What is known from tick to tick of the slots that are kept for a job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import msgspec

from burst.core.placement.job_backoff import JobBackoff
from burst.core.placement.plan import Demand, Plan, Reservation
from burst.model.jobid import JobId


class KeptReservation(msgspec.Struct, frozen=True, kw_only=True):
    """What one tick leaves to the next."""

    reservation: Reservation | None = None
    overtaken: Mapping[JobId, int] = {}
    """How many nodes that pending jobs waited for were given to others."""
    backoffs: Mapping[JobId, JobBackoff] = {}
    """Of jobs for which slots are kept, or were kept for too long."""

    def pause(self, demands: Sequence[Demand], now: float) -> list[Demand]:
        """Return the demands; those for which no slots are kept now say so."""
        paused = {job for job, known in self.backoffs.items() if now < known.until}
        return [
            msgspec.structs.replace(demand, reservation_paused=True)
            if demand.job in paused
            else demand
            for demand in demands
        ]

    def after(
        self, plan: Plan, pending: Set[JobId], now: float, limit: float
    ) -> KeptReservation:
        """Return what is left after a plan; `limit` as `update_reservation_backoffs`.

        `pending` are the jobs that were decided on in its tick.
        """
        known = {job: n for job, n in self.overtaken.items() if job in pending}
        return KeptReservation(
            reservation=plan.reservation,
            overtaken={**known, **plan.overtaken},
            backoffs=update_reservation_backoffs(
                self.backoffs, plan.reservation, pending, now, limit
            ),
        )


def update_reservation_backoffs(
    before: Mapping[JobId, JobBackoff],
    made: Reservation | None,
    pending: Set[JobId],
    now: float,
    limit: float,
) -> Mapping[JobId, JobBackoff]:
    """Return for how long slots are kept; after `limit` seconds none are for as long.

    The others must not wait for ever for a job whose slots never come free. Where the
    time limits of jobs say when they do, that is waited for.
    """
    found = {
        job: known.without_wait()
        for job, known in before.items()
        if job in pending and known.expired
    }
    if made is not None and not now < made.start < math.inf:
        known = before.get(made.job, JobBackoff())
        found[made.job] = known.after_wait(now, limit)
    return found
