# SPDX-License-Identifier: MIT
"""The records in the store; each intent is written before it is acted on.

| key | record |
|---|---|
| `burst/BURST` | lease, events and sums of a burst |
| `job/BURST/JOB` | what happened to one job that counts on that burst |
| `hold/JOB` | what we did to a job's urgency |
| `provider/NAME` | what is held against a provider |
| `output/BURST` | what an isolated burst wrote |
| `entry/BURST` | what is reserved for a burst, and what its nodes did |
| `ledger/PERIOD` | what was settled of the bursts of a day (2026-11-22) or month |
| `settled/BURST` | what one of the last bursts has cost |
| `times/PROVIDER` | how long its bursts took to come and to go |
| `repeat/JOB` | what came of running a job again that lost a node |
| `notice/told` | which notices were told, and to whom |
| `meta/clock` | by which clock their times were written |

Keys of other kinds are those of packages (`burst.runtime.daemon_package`).

A transaction has only the records that changed: its size depends on what happened, not
on how much is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from burst.config import LimitSettings
from burst.core.records import Records
from burst.errors import RecordTooLarge, StoreError
from burst.lead import MAX_VALUE_BYTES, Store
from burst.model.burst import Burst, BurstId, JobTimes
from burst.model.hold import Hold, encode_hold
from burst.model.jobid import JobId
from burst.model.record import encode_job, encode_record
from burst.runtime.clock import ClockMark
from burst.runtime.clock_steps import CLOCK, find_step, move_times
from burst.runtime.read_records import SINGLE, name_of, read_records

_K = TypeVar("_K")
SCHEMA = 1
_SCHEMA_KEY = "meta/schema"
FORECAST = "forecast/"
"""Prefix of the keys of what forecasts have learned. No decision depends on it."""
NOTICES = "notice/told"
"""Key of which notices were told. No decision depends on it either."""


class RecordStore:
    """Reads the records once, then writes what changed, a transaction each time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.forecast_texts: Mapping[str, str] = {}
        """What forecasts had learned, by key, when the store was read."""
        self.notice_text: str | None = None
        """Which notices had been told when the store was read; None for none."""
        self._left: Mapping[str, list[str]] = {}
        """By key of a burst's record that cannot be read: the keys of its jobs."""
        self._doubtful: frozenset[str] = frozenset()
        """Keys of writes that the store did not confirm. It may have kept them, or may
        still do so. So the next write repeats them with the values that they are to
        have."""
        self._moved: dict[str, str | None] = {}
        """Records that the next transaction writes anew, after a step of the clock."""

    def load(
        self,
        now: float,
        limits: LimitSettings | None = None,
        clock: ClockMark | None = None,
    ) -> Records:
        """Return the records. A record that cannot be read is listed, never deleted.

        `limits` bound how long from now anything is held against a provider. If `clock`
        is given and the system clock has stepped since the records were written, their
        times are moved by the step. Raises StoreError if a newer version of this
        program wrote the store.
        """
        texts = dict(self._store.load())
        self._check_schema(texts.get(_SCHEMA_KEY))
        if clock is not None:
            moved = move_times(texts, find_step(texts.get(CLOCK), clock))
            texts |= moved
            self._moved = {**moved, CLOCK: msgspec.json.encode(clock).decode()}
        self.forecast_texts = {
            key: text for key, text in texts.items() if key.startswith(FORECAST)
        }
        self.notice_text = texts.get(NOTICES)
        records = read_records(texts, now, limits)
        self._left = {
            key: [job for job in texts if job.startswith(f"job{key[5:]}/")]
            for key in records.unreadable
            if key.startswith("burst/")
        }
        return records

    def write(self, before: Records, after: Records) -> int:
        """Write the records that differ, in one transaction; return how many did.

        Raises RecordTooLarge, StoreError and Unreadable; then none of the changes may
        be acted on.
        """
        changes: dict[str, str | None] = {}
        if before.bursts is not after.bursts:
            self._differ_bursts(changes, before.bursts, after.bursts)
        for kind, field in SINGLE.items():
            _differ(changes, kind, getattr(before, field), getattr(after, field))
        for key in before.unreadable.keys() - after.unreadable.keys():
            # A person gave this record up. Write what is known in its place, if any.
            changes.setdefault(key, _record_of(after, key))
            for job in self._left.get(key, ()):
                changes.setdefault(job, None)
        sizes = {key: len((text or "").encode()) for key, text in changes.items()}
        large = {key: size for key, size in sizes.items() if size > MAX_VALUE_BYTES}
        if large:
            raise RecordTooLarge(large, MAX_VALUE_BYTES)
        for key in self._doubtful - changes.keys():
            if not _is_unreadable(after, key):
                changes[key] = _record_of(after, key)
        if changes:
            # Until the store has answered, any of this may be kept, even later.
            self._doubtful |= changes.keys()
            # Moved records are only written together with others: the store may be
            # full, and until then its records and its clock agree.
            self._store.write({**self._moved, **changes})
            self._moved = {}
        self._doubtful = frozenset()
        return len(changes)

    def write_forecast(self, texts: Mapping[str, str]) -> None:
        """Keep what forecasts have learned. Raises StoreError, Unreadable."""
        self._store.write(texts)

    def write_notices(self, text: str) -> None:
        """Keep which notices were told. Raises StoreError, Unreadable."""
        self._store.write({NOTICES: text})

    def _differ_bursts(
        self,
        changes: dict[str, str | None],
        before: Mapping[BurstId, Burst],
        after: Mapping[BurstId, Burst],
    ) -> None:
        for name, burst in after.items():
            old = before.get(name)
            if old is burst:
                continue
            same = old and old.events is burst.events and old.sums is burst.sums
            if not same:
                changes[f"burst/{name}"] = encode_record(burst)
            _differ(changes, f"job/{name}", old.times if old else {}, burst.times)
        for name in before.keys() - after.keys():
            changes[f"burst/{name}"] = None
            _differ(changes, f"job/{name}", before[name].times, {})

    def _check_schema(self, text: str | None) -> None:
        if text is None:
            self._store.write({_SCHEMA_KEY: str(SCHEMA)})
        elif not text.isdigit() or int(text) != SCHEMA:
            raise StoreError(
                f"the store has schema {text!r}, this program knows {SCHEMA}",
                "run the version of burst that wrote it, or a newer one",
            )


def _differ(
    changes: dict[str, str | None],
    prefix: str,
    before: Mapping[_K, object],
    after: Mapping[_K, object],
) -> None:
    if before is after:
        return
    for key, value in after.items():
        if before.get(key) is not value:
            changes[f"{prefix}/{key}"] = _encode(value)
    for key in before:
        if key not in after:
            changes[f"{prefix}/{key}"] = None


def _is_unreadable(records: Records, key: str) -> bool:
    """Tell whether a record, or that of its burst, is one that cannot be read."""
    burst = key.split("/")[1]
    return key in records.unreadable or f"burst/{burst}" in records.unreadable


def _record_of(records: Records, key: str) -> str | None:
    """Return what the store is to have under a key; None for nothing."""
    kind, _, name = key.partition("/")
    value: object
    if kind == "burst":
        burst = records.bursts.get(BurstId(name))
        return encode_record(burst) if burst else None
    if kind == "job":
        burst_id, _, job = name.rpartition("/")
        burst = records.bursts.get(BurstId(burst_id))
        times = burst.times if burst else {}
        value = times.get(JobId(int(job))) if job.isdecimal() else None
    else:
        value = getattr(records, SINGLE[kind]).get(name_of(kind, name))
    return None if value is None else _encode(value)


def _encode(value: object) -> str:
    if isinstance(value, JobTimes):
        return encode_job(value)
    if isinstance(value, Hold):
        return encode_hold(value)
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
