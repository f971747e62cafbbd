# SPDX-License-Identifier: MIT
"""The books in the store, each record written before what it says is done.

| key | record |
|---|---|
| `burst/BURST` | lease, events and sums of a burst |
| `job/BURST/JOB` | what happened to one job that counts on that burst |
| `hold/JOB` | what we did to a job's urgency |
| `provider/NAME` | what is held against a provider |
| `output/BURST` | what an isolated burst wrote |

A transaction has only the records that changed: its size depends on what happened and
not on what is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from burst.core.world import Books
from burst.errors import RecordTooLarge, StoreError
from burst.lead import LARGEST_VALUE, Store
from burst.model.burst import Burst, BurstId, JobTimes
from burst.model.hold import Hold, encode_hold
from burst.model.record import encode_job, encode_record
from burst.shell.read_records import read_books

_K = TypeVar("_K")
SCHEMA = 1
_SCHEMA_KEY = "meta/schema"


class Ledger:
    """Reads the books once, then writes what changed, a transaction each time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._old_form: frozenset[BurstId] = frozenset()
        """Bursts whose record is of the first version: it is written whole."""

    def load(self, now: float) -> Books:
        """Return the books. A record that cannot be read is listed, never deleted.

        Raises StoreError if a newer version of this program wrote the store.
        """
        records = self._store.load()
        self._check_schema(records.get(_SCHEMA_KEY))
        books, self._old_form = read_books(records, now)
        return books

    def write(self, before: Books, after: Books) -> int:
        """Keep what differs, in one transaction; return how many records did.

        Raises RecordTooLarge, StoreError and Unreadable; then nothing of it may be
        acted on.
        """
        changes: dict[str, str | None] = {}
        if before.bursts is not after.bursts or self._old_form:
            self._differ_bursts(changes, before.bursts, after.bursts)
        _differ(changes, "hold", before.holds, after.holds)
        _differ(changes, "provider", before.health, after.health)
        _differ(changes, "output", before.outputs, after.outputs)
        sizes = {key: len((text or "").encode()) for key, text in changes.items()}
        large = {key: size for key, size in sizes.items() if size > LARGEST_VALUE}
        if large:
            raise RecordTooLarge(large, LARGEST_VALUE)
        if changes:
            self._store.write(changes)
        self._old_form = frozenset()
        return len(changes)

    def _differ_bursts(
        self,
        changes: dict[str, str | None],
        before: Mapping[BurstId, Burst],
        after: Mapping[BurstId, Burst],
    ) -> None:
        for name, burst in after.items():
            old = None if name in self._old_form else before.get(name)
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
    room: str,
    before: Mapping[_K, object],
    after: Mapping[_K, object],
) -> None:
    if before is after:
        return
    for key, value in after.items():
        if before.get(key) is not value:
            changes[f"{room}/{key}"] = _encode(value)
    for key in before:
        if key not in after:
            changes[f"{room}/{key}"] = None


def _encode(value: object) -> str:
    if isinstance(value, JobTimes):
        return encode_job(value)
    if isinstance(value, Hold):
        return encode_hold(value)
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
