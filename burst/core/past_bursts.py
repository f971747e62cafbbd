# SPDX-License-Identifier: MIT
"""Past bursts and jobs for `burst report`, one by one, ready for JSON.

All is known about bursts that are on record; about older ones only their settled row.
Times are in seconds since the epoch, amounts in the unit of the prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from burst.core.cost import cost
from burst.core.money.ledger import SettledBurst
from burst.core.money.money import to_units
from burst.core.records import Records
from burst.core.report import Row, burst_row
from burst.core.world import World
from burst.model.burst import Burst, BurstId, JobTimes
from burst.model.jobid import JobId, format_f58
from burst.model.lead import PENDING, LeadView


class PastBursts(msgspec.Struct, frozen=True):
    """The data from which the rows are made."""

    records: Records
    world: World
    archived: tuple[SettledBurst, ...]
    """Settled bursts, some of which may be on record, too."""
    since: float
    """Only bursts that were made at this time or later are shown."""
    now: float
    userid: int | None = None
    """The user whose bursts and jobs are shown; None for all users."""

    def bursts(self) -> list[Row]:
        """Return a row for each burst, in the order in which they were made."""
        settled = self._settled()
        rows = [
            self._row(b, settled.get((b.id, b.lease.created))) for b in self._seen()
        ]
        on_record = {(b.id, b.lease.created) for b in self.records.bursts.values()}
        rows += [
            _settled_row(row)
            for key, row in settled.items()
            if key not in on_record and row.is_for(self.userid)
        ]
        return sorted(rows, key=lambda row: (row["made"], row["id"]))

    def jobs(self) -> list[Row]:
        """Return a row for each known job of these bursts, in the order of submission.

        `here` is when it was expected to start on own nodes at the time it was assigned
        to the burst; None if no forecast was known then. `left` is when the last
        of its bursts ended, if it ran on none of them and is known to wait no more;
        else None.
        """
        users, lead = self._users(), self.world.lead
        known: dict[JobId, list[tuple[Burst, JobTimes]]] = {}
        for burst in self._seen():
            for job, times in (*burst.sums.recent, *burst.times.items()):
                if self.userid in (None, users.get(job)):
                    known.setdefault(job, []).append((burst, times))
        rows = [
            _job_row(job, found, users.get(job), lead) for job, found in known.items()
        ]
        return sorted(rows, key=lambda row: (row["submitted"], row["id"]))

    def _seen(self) -> Iterator[Burst]:
        for burst in self.records.bursts.values():
            theirs = self.userid is None or self.userid in burst.lease.userids
            if theirs and burst.lease.created >= self.since:
                yield burst

    def _settled(self) -> dict[tuple[BurstId, float], SettledBurst]:
        rows: Iterable[SettledBurst]
        rows = (*self.archived, *self.records.settled.values())
        return {(row.burst, row.made): row for row in rows if row.made >= self.since}

    def _users(self) -> dict[JobId, int | None]:
        """Return the user of each job, as far as the lead or the accounts know it."""
        paid = (*self.archived, *self.records.settled.values())
        users = {
            share.job: share.payer.userid
            for row in (*paid, *self.records.entries.values())
            for share in row.shares
            if share.job is not None
        }
        lead = self.world.lead
        return users | {
            job.id: job.userid for job in (lead.jobs if lead else {}).values()
        }

    def _row(self, burst: Burst, settled: SettledBurst | None) -> Row:
        paid = cost(self.records, burst, self.now)
        if settled is not None:
            paid = to_units(settled.costs.total)
        told = burst_row(burst, self.world, self.now)
        kept = ("id", "provider", "offer", "nodes", "state", "result", "note", "states")
        return {key: told[key] for key in kept} | {
            "made": burst.lease.created,
            "ended": None if burst.live else burst.since,
            "ended_jobs": dict(burst.sums.results),
            "cost": round(paid, 6),
            "wasted": to_units(settled.costs.wasted) if settled else None,
        }


def _settled_row(row: SettledBurst) -> Row:
    """Return the row of a burst whose record is gone."""
    return {
        "id": row.burst,
        "provider": row.provider,
        "offer": row.offer,
        "nodes": row.nodes,
        "state": "inactive",
        "result": "reclaimed" if row.reclaimed else None,
        "note": "",
        "states": [],
        "made": row.made,
        "ended": row.ended,
        "ended_jobs": {},
        "cost": to_units(row.costs.total),
        "wasted": to_units(row.costs.wasted),
    }


def _job_row(
    job: JobId,
    found: list[tuple[Burst, JobTimes]],
    userid: int | None,
    lead: LeadView | None,
) -> Row:
    """Return the row of a job, with its times from the burst on which it got furthest.

    Its other bursts may have failed before the job could run there.
    """
    times = max((times for _, times in found), key=_how_far)
    here = (of.here for _, of in found if of.here is not None)
    ends = max(burst.since for burst, _ in found)
    return {
        "id": format_f58(job),
        "userid": userid,
        "bursts": [burst.id for burst, _ in found],
        "submitted": times.submitted,
        "here": next(here, None),
        "started": times.started,
        "finished": times.finished,
        "left": None if _may_run(job, found, lead) else ends,
        "result": times.result,
    }


def _may_run(
    job: JobId, found: list[tuple[Burst, JobTimes]], lead: LeadView | None
) -> bool:
    """Tell whether a job ran on one of its bursts, or may still run on a burst."""
    if any(_how_far(times) != (False, False) or burst.live for burst, times in found):
        return True
    view = lead.jobs.get(job) if lead else None
    return lead is None or (view is not None and view.state in PENDING)


def _how_far(times: JobTimes) -> tuple[bool, bool]:
    return times.finished is not None, times.started is not None
