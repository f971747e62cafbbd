# SPDX-License-Identifier: MIT
"""What the service `burst` shows of a snapshot, as rows for JSON.

Without a daemon, the command line shows the same of a snapshot that it reads itself.
"""

from __future__ import annotations

import datetime
import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst import __version__
from burst.core import cost, job_report, report
from burst.core.burst_story import burst_story
from burst.core.cost import usage_line, usage_lines
from burst.core.forecast.forecast import kind_of
from burst.core.forecast.grades import ALL, grade_of, grade_row, start_row
from burst.core.guest_view import (
    GuestView,
    providers_for_guests,
    records_for_guests,
    story_for,
    world_for_guests,
)
from burst.core.job_report import WaitingJobs, starts_by_itself
from burst.core.jobs.burst_worth import worth_for_job
from burst.core.jobs.refusal_cache import without_refusals
from burst.core.money.budget import Budgets
from burst.core.money.cost_report import (
    CostReport,
    budget_row,
    budget_row_for,
    names_user,
)
from burst.core.money.periods import midnight
from burst.core.past_bursts import PastBursts
from burst.core.plan.outlook import outlook
from burst.core.tick import TickResult, run_tick
from burst.errors import BurstError
from burst.model.active_job import ActiveJob
from burst.model.burst import Burst, BurstId
from burst.model.decision import Decision
from burst.model.jobid import JobId, format_f58
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.runtime.ledger_archive import ArchivedRows
from burst.runtime.service_requests import CostRequest, ReportRequest, parse_job
from burst.runtime.snapshot import Snapshot

Row = dict[str, Any]
# The most bursts of the archive in a report, and the most waiting jobs.
_MOST_REPORTED = 2_000
_MOST_WAITING = 200


def describe_process(since: float, config: str = "") -> Row:
    """Return what `Lead.serve` tells of this process, which serves since `since`.

    `config` is the path of its settings file, empty for none.
    """
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": since,
        "version": __version__,
        "config": config,
    }


def status(snapshot: Snapshot, daemon: Row | None) -> Row:
    """Return bursts, slots and providers; `daemon` is None if no daemon serves."""
    now, bursts = snapshot.now, snapshot.records.bursts
    prices = snapshot.settings.prices
    row = report.status(snapshot.records, snapshot.world, snapshot.orphans, prices, now)
    for each in row["bursts"]:
        left = cost.seconds_until_drain(bursts[each["id"]], snapshot.settings, now)
        if daemon is None:
            left = None  # nobody takes it down
        each["down_in"] = None if left is None else round(left, 3)
    pending = len(snapshot.decisions)
    totals = burst_totals(row["bursts"], snapshot)
    budgets = Budgets(
        snapshot.settings.budget, snapshot.records, snapshot.world.userids, now
    )
    return {
        **row,
        "budgets": [budget_row(state) for state in budgets.states()],
        "totals": totals,
        "daemon": daemon,
        "pending": pending,
        "untold": dict(snapshot.untold),
        "standing": dict(snapshot.standing),
        "forecasts": _forecasts(snapshot),
        "banks_unverified": (
            unverified_banks(snapshot) if snapshot.settings.uses_banks else ""
        ),
    }


def burst_totals(rows: list[Row], snapshot: Snapshot) -> Row:
    """Return nodes and cost of the bursts in these rows."""
    return cost.totals(rows, snapshot.world.slots, snapshot.settings)


def waiting_jobs(snapshot: Snapshot, most: int, userid: int | None = None) -> list[Row]:
    """Return rows of the jobs that wait, of this user or, if None, of all."""
    starts = snapshot.forecasts.starts if snapshot.forecasts else {}
    waiting = WaitingJobs(
        snapshot.records, snapshot.world, snapshot.decisions, starts, snapshot.now
    )
    return waiting.rows(most, userid)


def _story_of(burst: Burst, snapshot: Snapshot) -> Row:
    settings, world = snapshot.settings, snapshot.world
    story = burst_story(snapshot.records, burst, settings, world, snapshot.now)
    note = report.burst_note(burst, world)
    return story | {"note": note, "utc_offset": _utc_offset(snapshot)}


def _utc_offset(snapshot: Snapshot) -> int:
    """Return by how many seconds the times in texts are ahead of UTC."""
    return time.localtime(snapshot.now).tm_gmtoff


def explain(
    snapshot: Snapshot,
    name: str,
    userid: int | None = None,
    find: Callable[[JobId], ActiveJob | None] = lambda _: None,
) -> Row:
    """Return the story of a job or a burst, for this user or, if None, for the owner.

    `find` returns a job of the lead, burstable or not. The story of a burst has a key
    `burst`. Raises BurstError if it is not known, or is another user's, and Unreadable
    if the lead was not read.
    """
    burst = snapshot.records.bursts.get(BurstId(name))
    if burst is not None:
        if userid is None:
            return _story_of(burst, snapshot)
        view = guest_view(snapshot, userid)
        if view.is_theirs(burst):
            return story_for(view, _story_of(burst, snapshot))
    try:
        job_id = parse_job(name)
    except BurstError as error:
        why = f"no burst has the id {name!r}, and {error}"
        if userid is not None:
            # Whether it is another user's burst or none, the answer is the same.
            why = "that is neither a burst of yours nor a job id"
        raise BurstError(why, "burst status -a lists the bursts") from None
    decisions = _judged_again(snapshot, job_id)
    guest = userid is not None
    row = job_report.explain(
        snapshot.records, snapshot.world, decisions, job_id, guest=guest
    )
    other = find(job_id) if row is None else None
    if other is not None:
        row = job_report.explain_other(
            other,
            snapshot.records,
            snapshot.world,
            any_job=snapshot.settings.intake.any_job,
        )
    theirs = userid is None or guest_view(snapshot, userid).knows(job_id)
    if row is None or not (theirs or row["userid"] == userid):
        if snapshot.world.lead is None:
            raise job_report.unread_lead(snapshot.world, guest=guest)
        raise job_report.unknown_job(job_id, guest=guest)
    return row | {
        "here": _here(snapshot, job_id) if starts_by_itself(row) else None,
        "usage": _usage(snapshot, job_id),
        "utc_offset": _utc_offset(snapshot),
    }


def _usage(snapshot: Snapshot, job_id: JobId) -> list[str]:
    """Return how the nodes of a job's live bursts count in its bank."""
    lead, world = snapshot.world.lead, snapshot.world
    job = lead.jobs.get(job_id) if lead else None
    if job is None:
        return []
    bursts = (burst for burst in snapshot.records.live if job_id in burst.jobs)
    return usage_lines(bursts, world.banks.bank_of(job), world)


def _here(snapshot: Snapshot, job: JobId) -> Row | None:
    """Return when a job that waits is expected to start here; None if unknown."""
    forecasts = snapshot.forecasts
    if forecasts is None or snapshot.world.lead is None:
        return None
    waits, start = forecasts.job(job), forecasts.starts.get(job)
    if waits is None or start is None:
        return None
    grade = grade_of(forecasts.grades, kind_of(waits))
    return start_row(start, grade, snapshot.now)


def _forecasts(snapshot: Snapshot) -> Row | None:
    """Return how many starts are forecast, and how good forecasts were; None if off."""
    forecasts = snapshot.forecasts
    if forecasts is None:
        return None
    grade = forecasts.grades.get(ALL)
    return {
        "at": forecasts.at,
        "jobs": len(forecasts.starts),
        "grade": None if grade is None else grade_row(grade),
    }


def _judged_again(snapshot: Snapshot, job: JobId) -> Mapping[JobId, Decision]:
    """Return the decisions, or the one on this job judged anew by the last forecast.

    It is judged anew if the tick found a burst not worth it: the tick keeps such a
    decision while a new forecast changes nothing.
    """
    decision, lead = snapshot.decisions.get(job), snapshot.world.lead
    if decision is None or decision.reason is not Reason.NOT_WORTH or lead is None:
        return snapshot.decisions
    view, world = lead.jobs[job], snapshot.world
    if snapshot.forecasts is not None:
        world = msgspec.structs.replace(world, forecasts=snapshot.forecasts.starts)
    worth = worth_for_job(snapshot.records, world, snapshot.settings, snapshot.now)
    again, _ = worth.decide(view, worth.context.demand(view), math.inf)
    return {job: again or decision}


def cost_of(snapshot: Snapshot, asked: CostRequest, userid: int | None = None) -> Row:
    """Return what is reserved, settled and left, for this user or, if None, for all.

    By job and since a day, bursts in the archive count as well. Raises StoreError if
    that cannot be read.
    """
    records, userids = snapshot.records, snapshot.world.userids
    archived = ArchivedRows([])
    if asked.by == "job" and asked.since and snapshot.archive is not None:
        archived = snapshot.archive.read(_begin_of(asked.since))
    report = CostReport(records, asked.since, userid, archived.rows)
    theirs = [
        burst
        for burst in records.bursts.values()
        if userid is None or userid in burst.lease.userids
    ]
    states = Budgets(snapshot.settings.budget, records, userids, snapshot.now).states()
    return {
        "now": snapshot.now,
        "since": asked.since,
        "settled_since": report.begins,
        "by": asked.by,
        "months": report.months(),
        "rows": report.rows(asked.by) if asked.by else [],
        "left_out": archived.left_out,
        "banks_unverified": unverified_banks(snapshot),
        "usage": (
            usage_lines(theirs, "", snapshot.world) if asked.by == "bank" else []
        ),
        "prices": report.prices(),
        "budgets": [
            budget_row(state)
            if userid is None
            else budget_row_for(state, userid, userids)
            for state in states
            if userid is None or names_user(state.budget, userid, userids)
        ],
    }


def report_of(
    snapshot: Snapshot, asked: ReportRequest, userid: int | None = None
) -> Row:
    """Return what happened since a day, for this user or, if None, for the owner.

    `burst report` and its page show it. Raises StoreError if the archive cannot be
    read, BurstError for a day that no calendar has.
    """
    since, archived = 0.0, ArchivedRows([])
    if asked.since:
        since = _begin_of(asked.since)
        if snapshot.archive is not None:
            archived = snapshot.archive.read(since, _MOST_REPORTED)
    past = PastBursts(
        snapshot.records,
        snapshot.world,
        tuple(archived.rows),
        since,
        snapshot.now,
        userid,
    )
    shown = status(snapshot, None)
    providers = shown["providers"]
    grades = snapshot.forecasts.grades if snapshot.forecasts else {}
    return {
        "now": snapshot.now,
        "since": asked.since,
        "lead": shown["lead"]["uri"],
        "bursts": past.bursts(),
        "jobs": past.jobs(),
        "waiting": waiting_jobs(snapshot, _MOST_WAITING, userid),
        "providers": providers if userid is None else providers_for_guests(providers),
        "forecasts": [
            {"group": name, **grade_row(grade)}
            for name, grade in grades.items()
            if userid is None or name == ALL
        ],
        "cost": cost_of(snapshot, CostRequest("provider", asked.since), userid),
        "left_out": archived.left_out,
    }


def _begin_of(day: str) -> float:
    """Return when a day begins. Raises BurstError for one that no calendar has."""
    try:
        return midnight(datetime.date.fromisoformat(day))
    except ValueError:
        raise BurstError(f"since: {day} is not a day", "such as 2026-11-01") from None


def unverified_banks(snapshot: Snapshot) -> str:
    """Return why banks are as jobs name them, not verified; empty if they are."""
    banks = snapshot.world.banks
    return banks.unverified if banks.associations is None else ""


def plan(snapshot: Snapshot) -> Row:
    """Return what a tick would do now, by the planner's own code, without doing it."""
    cache = without_refusals(snapshot.refusal_cache)
    made = run_tick(
        snapshot.records, snapshot.world, snapshot.settings, snapshot.now, cache
    )
    lead = snapshot.world.lead
    jobs = lead.jobs if lead else {}
    new = [
        b
        for name, b in made.records.bursts.items()
        if name not in snapshot.records.bursts
    ]
    return {
        "now": snapshot.now,
        "bursts": [
            {
                **report.burst_row(burst, snapshot.world, snapshot.now),
                "price": cost.rate(burst),
                "usage": usage_line(burst.lease, "", snapshot.world),
            }
            for burst in new
        ],
        "jobs": [
            job_report.job_row(jobs[job], decision)
            for job, decision in made.decisions.items()
        ],
        "timeline": _timeline(made, snapshot),
        "trouble": snapshot.world.trouble,
    }


def _timeline(made: TickResult, snapshot: Snapshot) -> list[Row]:
    """Return who has the ranks of each slot, and who gets them next."""
    if made.refusal_cache is None:
        return []
    promises = made.refusal_cache.promises
    before = {rank for b in snapshot.records.live for rank in b.lease.ranks}
    given = {rank for b in made.records.live for rank in b.lease.ranks} - before
    spans = outlook(made.records, snapshot.world, promises, given, snapshot.now)
    return [
        {
            "slot": span.slot,
            "ranks": format_idset(frozenset(span.ranks)),
            "holder": span.holder,
            "from": span.begins,
            "until": None if math.isinf(span.ends) else span.ends,
            "burst": span.burst,
            "jobs": [*map(format_f58, span.jobs)],
            "known": span.known,
        }
        for span in spans
    ]


def for_guests(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without what providers said of their accounts and settings."""
    return msgspec.structs.replace(
        snapshot,
        records=records_for_guests(snapshot.records),
        world=world_for_guests(snapshot.world),
    )


def guest_view(snapshot: Snapshot, userid: int) -> GuestView:
    """Return what a user who is not the instance owner may see."""
    return GuestView(userid, snapshot.records, snapshot.world)
