# SPDX-License-Identifier: MIT
"""Reads the records in the store; one that cannot be read does not stop the others."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import msgspec

from burst.config import LimitSettings
from burst.core.lifecycle import quarantine, restore
from burst.core.money.ledger import Entry, SettledBurst
from burst.core.money.periods import Period
from burst.core.plan.online_times import ProviderTimes
from burst.core.provider_health import Health, bound_times
from burst.core.records import Records
from burst.decode import from_json
from burst.errors import RecordUnreadable
from burst.model.burst import ISOLATED_STEM, Burst, BurstId, JobTimes
from burst.model.hold import decode_hold
from burst.model.jobid import JobId
from burst.model.record import BurstRecord, decode_job, decode_record
from burst.model.repeat import Repeat
from burst.runtime.clock_steps import (
    Change,
    change_events,
    change_hold,
    change_job,
    changed,
)

SINGLE: Mapping[str, str] = {
    "hold": "holds",
    "provider": "health",
    "output": "outputs",
    "entry": "entries",
    "ledger": "periods",
    "settled": "settled",
    "times": "times",
    "repeat": "repeats",
}
"""Kinds of records that are one value each, and their fields in Records."""
_AS_WRITTEN: Mapping[str, type[msgspec.Struct]] = {
    "ledger": Period,
    "settled": SettledBurst,
    "times": ProviderTimes,
    "repeat": Repeat,
}
"""The types of those kinds that are read from JSON without a change."""


def read_records(
    texts: Mapping[str, str], now: float, limits: LimitSettings | None = None
) -> Records:
    """Return the records.

    `limits` bound how long from now anything is held against a provider; None leaves
    it as it was written.
    A record that cannot be read is listed in `unreadable`, with the reason. Records of
    other kinds are read elsewhere, also by packages.
    """
    found: dict[str, dict[Any, Any]] = {field: {} for field in SINGLE.values()}
    unreadable: dict[str, str] = {}
    bursts = _read_bursts(texts, unreadable, now)
    for key, text in texts.items():
        kind, _, name = key.partition("/")
        if kind not in SINGLE:
            continue
        try:
            value = _read(kind, text, now, limits)
            found[SINGLE[kind]][name_of(kind, name)] = value
        except (RecordUnreadable, ValueError) as error:
            unreadable[key] = str(error)
    return Records(bursts=bursts, unreadable=unreadable, **found)


def name_of(kind: str, name: str) -> JobId | str:
    """Return the key of a value in Records: a job's id, a burst's, or a name.

    Raises ValueError if it has to be a job's id and is none.
    """
    return JobId(int(name)) if kind in ("hold", "repeat") else name


def _read(kind: str, text: str, now: float, limits: LimitSettings | None) -> object:
    """Return the value of a record. Raises RecordUnreadable, ValueError."""
    match kind:
        case "hold":
            return change_hold(decode_hold(text), _until(now))
        case "provider":
            health = from_json(text, Health)
            return bound_times(health, limits, now) if limits else health
        case "entry":
            return changed(from_json(text, Entry), ("at",), _until(now))
        case "output":
            return text
        case _:
            return from_json(text, _AS_WRITTEN[kind])


def _burst_of(key: str) -> str:
    """Return the burst that a job's record belongs to; empty for other records."""
    room, _, name = key.partition("/")
    return name.rpartition("/")[0] if room == "job" else ""


def _read_jobs(
    texts: Mapping[str, str], unreadable: dict[str, str], now: float
) -> dict[str, dict[JobId, JobTimes]]:
    """Return what is known of the jobs of each burst.

    If a burst's own record cannot be read, that record is listed and not those of its
    jobs; `_list_lost_jobs` adds the jobs of isolated bursts.
    """
    jobs: dict[str, dict[JobId, JobTimes]] = {}
    for key, text in texts.items():
        burst = _burst_of(key)
        if not burst:
            continue
        if f"burst/{burst}" not in texts:
            unreadable[key] = "there is no record of its burst"
            continue
        try:
            job = JobId(int(key.rpartition("/")[2]))
            times = change_job(decode_job(text), _until(now))
            jobs.setdefault(burst, {})[job] = times
        except (RecordUnreadable, ValueError) as error:
            unreadable[key] = str(error)
    return jobs


def _read_bursts(
    texts: Mapping[str, str], unreadable: dict[str, str], now: float
) -> dict[BurstId, Burst]:
    jobs = _read_jobs(texts, unreadable, now)
    bursts: dict[BurstId, Burst] = {}
    for key, text in texts.items():
        kind, _, name = key.partition("/")
        if kind != "burst":
            continue
        try:
            record = change_events(decode_record(text), _until(now))
            burst = _read_burst(name, record, jobs.get(name, {}), unreadable)
        except RecordUnreadable as error:
            unreadable[key] = str(error)
            continue
        bursts[burst.id] = burst
    _list_lost_jobs(texts, unreadable)
    for key, why in unreadable.items():
        known = bursts.get(BurstId(_burst_of(key)))
        # Not a joined burst that has ended: only its drains are still to be undone.
        if known is not None and (known.live or known.lease.isolated):
            bursts[known.id] = quarantine(known, f"record {key}: {why}", now)
    return bursts


def _list_lost_jobs(texts: Mapping[str, str], unreadable: dict[str, str]) -> None:
    """List the jobs of each isolated burst whose record cannot be read.

    These jobs may run there, and must not run elsewhere.
    """
    for key in texts:
        burst = _burst_of(key)
        if burst.startswith(f"{ISOLATED_STEM}-") and f"burst/{burst}" in unreadable:
            unreadable.setdefault(key, "the record of its burst cannot be read")


def _read_burst(
    name: str,
    record: BurstRecord,
    jobs: Mapping[JobId, JobTimes],
    unreadable: Container[str],
) -> Burst:
    if record.lease.id != name:
        why = f"its key is {name}, but it says that it is {record.lease.id}"
        raise RecordUnreadable(why)
    job = record.lease.isolated_job
    if job is not None and f"job/{name}/{job}" in unreadable:
        # The lease names the job, too. Without it the job would be free for another
        # burst, and run twice.
        submitted = record.sums.submitted or record.lease.created
        jobs = {**jobs, job: JobTimes(submitted=submitted)}
    return restore(record, jobs)


def _until(now: float) -> Change:
    """Return what makes a time after now the time now.

    Such a time was written while the clock was ahead, before it was set back: deadlines
    count from now then, not from a time to come.
    """
    return lambda at: min(at, now)
