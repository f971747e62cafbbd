# SPDX-License-Identifier: MIT
"""What the service `burst` shows of a snapshot, as rows for JSON.

The command line shows the same of a snapshot that it reads itself without a daemon.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from burst import __version__
from burst.core import cost, report
from burst.core.burst_story import burst_story
from burst.core.tick import run_tick
from burst.errors import BurstError
from burst.model.burst import BurstId
from burst.model.jobid import JobId, format_f58
from burst.runtime.engine import Snapshot
from burst.runtime.service_requests import parse_job

Row = dict[str, Any]


def describe_process(since: float, config: str = "") -> Row:
    """Return who this process is, which serves since then, as `Lead.serve` wants it.

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
    row = report.status(snapshot.records, snapshot.world, snapshot.orphans, now)
    for each in row["bursts"]:
        left = cost.seconds_until_drain(bursts[each["id"]], snapshot.settings, now)
        each["down_in"] = None if left is None else round(left, 3)
    pending = len(snapshot.decisions)
    totals = burst_totals(row["bursts"], snapshot)
    return {**row, "totals": totals, "daemon": daemon, "pending": pending}


def burst_totals(rows: list[Row], snapshot: Snapshot) -> Row:
    """Return nodes and cost of the bursts in these rows."""
    return cost.totals(rows, snapshot.world.slots, snapshot.settings)


def explain(snapshot: Snapshot, name: str, userid: int | None = None) -> Row:
    """Return the story of a job or a burst, for this user or, if None, for the owner.

    That of a burst has a key `burst`. Raises BurstError if it is not known, or is
    another user's.
    """
    burst = snapshot.records.bursts.get(BurstId(name))
    if burst is not None and (userid is None or userid in burst.lease.userids):
        return burst_story(burst, snapshot.now)
    job_id = parse_job(name)
    row = report.explain(snapshot.records, snapshot.world, snapshot.decisions, job_id)
    if row is None or userid not in (None, row["userid"]):
        attribute = snapshot.settings.intake.attribute
        raise BurstError(
            f"{format_f58(job_id)} is no burstable job that burst knows",
            f"submit with --setattr={attribute}; what ended is soon forgotten",
        )
    return row


def plan(snapshot: Snapshot) -> Row:
    """Return what a tick would do now, by the planner's own code, without doing it."""
    made = run_tick(snapshot.records, snapshot.world, snapshot.settings, snapshot.now)
    lead = snapshot.world.lead
    jobs = lead.jobs if lead else {}
    new = [
        b
        for name, b in made.records.bursts.items()
        if name not in snapshot.records.bursts
    ]
    return {
        "bursts": [
            {
                **report.burst_row(burst, snapshot.world, snapshot.now),
                "price": burst.lease.price * burst.lease.nodes,
            }
            for burst in new
        ],
        "jobs": [
            report.job_row(jobs[job], verdict)
            for job, verdict in made.decisions.items()
        ],
        "trouble": snapshot.world.trouble,
    }


def jobs_of(userid: int, snapshot: Snapshot) -> set[JobId]:
    """Return the jobs of a user that the lead shows; empty if it cannot be read."""
    lead = snapshot.world.lead
    return {j.id for j in lead.jobs.values() if j.userid == userid} if lead else set()
