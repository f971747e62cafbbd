# SPDX-License-Identifier: MIT
"""Restricts answers of the service to what a guest may read.

A guest is a user of the instance other than its owner, and may read what is their own
or nobody's. Whoever makes the rows of an answer makes them for this user only;
`GuestView.hide` is the last step, which removes the ids of other users' jobs and bursts
from all texts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set
from typing import Any

import msgspec

from burst.core.burst_story import assigned_jobs
from burst.core.records import Records
from burst.core.report import Row
from burst.core.world import World
from burst.model.burst import Burst, BurstId
from burst.model.event import Event
from burst.model.jobid import JobId, parse_jobid, without_jobs

OWNER_SEES = "the owner of the instance sees why"
"""Replaces errors with a text that only the owner may read."""

# The id of a burst is a rank slot's name and six digits of a hash.
_BURST = re.compile(
    r"(?:burst )?(?<![a-z0-9-])([a-z0-9][a-z0-9-]*-[0-9a-f]{6})(?![a-z0-9-])"
)


# Types of exceptions with a note by the daemon; other notes may quote a provider.
_OUR_WORDS = frozenset({"canceled", "lead-moved", "lost", "not-held", "reclaimed"})


def records_for_guests(records: Records) -> Records:
    """Return the records without errors of providers' calls.

    These errors may name the account, its quota and files on the daemon's host. The
    reason of a quarantine may name the account, too.
    """
    bursts = {name: _without_errors(each) for name, each in records.bursts.items()}
    return msgspec.structs.replace(records, bursts=bursts)


def world_for_guests(world: World) -> World:
    """Return the world without errors of providers' calls, as `records_for_guests`."""
    calls = {
        name: msgspec.structs.replace(call, note=OWNER_SEES if call.note else "")
        for name, call in world.calls.items()
    }
    return msgspec.structs.replace(world, calls=calls)


def _without_errors(burst: Burst) -> Burst:
    if burst.quarantined:
        burst = msgspec.structs.replace(burst, quarantined=OWNER_SEES)
    if not any(_quotes(event) for event in burst.events):
        return burst
    events = tuple(
        msgspec.structs.replace(event, context={**event.context, "note": OWNER_SEES})
        if _quotes(event)
        else event
        for event in burst.events
    )
    return msgspec.structs.replace(burst, events=events)


def _quotes(event: Event) -> bool:
    """Tell whether an event's note may quote an error of a provider, or its place."""
    if event.name == "exception":
        return event.context.get("type") not in _OUR_WORDS
    if event.name in ("shrink", "shrunk"):
        return bool(event.context.get("growth_failed"))
    return event.name in ("retry", "overdue", "quarantine")


class GuestView:
    """The part of one snapshot that one guest may see."""

    def __init__(self, userid: int, records: Records, world: World) -> None:
        self._userid, self._records = userid, records
        jobs = world.lead.jobs.values() if world.lead else ()
        self.jobs = frozenset(job.id for job in jobs if job.userid == userid)
        """The guest's jobs that the lead shows."""

    def is_theirs(self, burst: Burst) -> bool:
        """Tell whether a burst was made for the guest, or was assigned their jobs."""
        if self._userid in burst.lease.userids:
            return True
        return not self._known_jobs.isdisjoint(assigned_jobs(burst))

    def sees(self, burst: str) -> bool:
        """Tell whether the burst with that id is on record and the guest's."""
        known = self._records.bursts.get(BurstId(burst))
        return known is not None and self.is_theirs(known)

    def knows(self, job: JobId) -> bool:
        """Tell whether a job is the guest's, which the lead or the accounts know."""
        return job in self._known_jobs

    def hide(self, row: Any) -> Any:
        """Return a row for JSON without ids of other users' jobs and bursts."""
        if isinstance(row, str):
            return self.hide_in(row)
        if isinstance(row, dict):
            # `name` is a job's name, given by its user. A row with the guest's userid
            # has the id of a job of the guest, which only the archive may know.
            kept = {"name", "id"} if row.get("userid") == self._userid else {"name"}
            return {
                key: value if key in kept else self.hide(value)
                for key, value in row.items()
                if self.hide_in(key) == key
            }
        if isinstance(row, list | tuple):
            return [self.hide(each) for each in row]
        return row

    def hide_in(self, text: str) -> str:
        """Return a text without ids of other users' jobs and bursts."""
        text = without_jobs(text, self._known_jobs)
        return _BURST.sub(self._shown_burst, text) if "-" in text else text

    @functools.cached_property
    def _known_jobs(self) -> frozenset[JobId]:
        """The guest's jobs, including jobs that only the accounts still know."""
        records = self._records
        paid = (*records.settled.values(), *records.entries.values())
        return self.jobs.union(
            share.job
            for row in paid
            for share in row.shares
            if share.job is not None and share.payer.userid == self._userid
        )

    def _shown_burst(self, found: re.Match[str]) -> str:
        known = found[1] in self._records.bursts
        return "another burst" if known and not self.sees(found[1]) else found[0]


def status_for(view: GuestView, row: Row, decided: Set[JobId]) -> Row:
    """Return the answer to `burst status` as a guest may see it, except the totals.

    `decided` are the jobs that wait, of all users.
    """
    bursts = [
        {**burst, "jobs": _own(burst["jobs"], view)}
        for burst in row["bursts"]
        if view.sees(burst["id"])
    ]
    lead, daemon = row["lead"], row["daemon"]
    return {
        **row,
        "bursts": bursts,
        "held": _own(row["held"], view),
        "slots": [
            {**slot, "burst": ", ".join(filter(view.sees, slot["burst"].split(", ")))}
            for slot in row["slots"]
        ],
        "providers": providers_for_guests(row["providers"]),
        "lead": {
            **lead,
            "trouble": OWNER_SEES if lead["trouble"] else "",
            "halt": OWNER_SEES if lead.get("halt") else "",
        },
        "daemon": daemon and {**daemon, "config": ""},
        "pending": len(view.jobs & decided),
        "orphans": [],
        "unreadable": {},
        "budgets": [],
        "untold": {},
        "standing": {},
    }


def providers_for_guests(rows: list[Row]) -> list[Row]:
    """Return the providers without messages about their accounts and settings."""
    return [
        {
            **row,
            "trouble": OWNER_SEES if row["trouble"] else "",
            "disabled": OWNER_SEES if row["disabled"] else row["disabled"],
            "offers": [_without_why(offer) for offer in row["offers"]],
        }
        for row in rows
    ]


def _without_why(offer: Row) -> Row:
    why = OWNER_SEES if offer["set_aside_why"] else ""
    refused = [{**spec, "why": OWNER_SEES} for spec in offer["refused"]]
    return {**offer, "set_aside_why": why, "refused": refused}


def story_for(view: GuestView, row: Row) -> Row:
    """Return the story of a burst without the jobs of other users."""
    own = [
        event
        for event in row["events"]
        if not event["name"].startswith("job-")
        or view.hide_in(event["text"]) == event["text"]
    ]
    return {**row, "events": own, "jobs": _own(row["jobs"], view)}


def _own(jobs: list[str], view: GuestView) -> list[str]:
    return [job for job in jobs if parse_jobid(job) in view.jobs]
