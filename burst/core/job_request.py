# SPDX-License-Identifier: MIT
"""`burst request --job`: a user wants a burst for a job, whatever that is worth."""

from __future__ import annotations

import msgspec

from burst.config import Settings
from burst.core.records import Records, Transaction
from burst.core.select.job_rules import job_rules
from burst.core.tick import TickResult, result_of
from burst.core.world import World
from burst.errors import BurstError
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import PENDING, JobView


def request_for_job(
    records: Records, world: World, settings: Settings, job: JobId, now: float
) -> TickResult:
    """Have the next ticks make a burst for a pending job though it is not worth it.

    Limits, budgets and what its rule says of providers and prices hold all the same.
    It is kept on the record of the job's hold, until the job starts or ends. Raises
    BurstError, Unreadable.
    """
    view, hold = world.read_lead().jobs.get(job), records.holds.get(job)
    tx = Transaction(records, now)
    if view is None or not job_rules(world, settings, now).may_burst(view):
        raise BurstError(
            f"{format_f58(job)} is not burstable",
            f"submit it with --setattr={settings.intake.attribute}",
        )
    _check(view, hold)
    if hold is None:
        # It has waited since it was submitted, and goes on waiting.
        hold = Hold.released(view.urgency, view.t_submit)
    tx.holds[job] = msgspec.structs.replace(hold, requested=True)
    return result_of(tx)


def _check(view: JobView, hold: Hold | None) -> None:
    """Raise BurstError where nothing would come of the request."""
    name = format_f58(view.id)
    if view.state not in PENDING:
        raise BurstError(f"{name} does not wait any more", f"burst explain {name}")
    held_by_us = hold is not None and hold.state in HELD_BY_US
    if hold is not None and hold.state is HoldState.TAKEN_BACK:
        raise BurstError(
            f"{name} was held for a burst and taken back, so it is left alone",
            "submit it again",
        )
    if view.urgency == 0 and not held_by_us:
        raise BurstError(
            f"{name} is held by its user", f"flux job urgency {name} 16 releases it"
        )
