# SPDX-License-Identifier: MIT
"""The books in the store: one key a record, written before what it says is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from burst.core.lifecycle import replay
from burst.core.limits import Health
from burst.core.world import Books
from burst.errors import RecordUnreadable, StoreError
from burst.lead import Store
from burst.model.burst import Burst, BurstId, decode_record, encode_record
from burst.model.hold import Hold, decode_hold, encode_hold
from burst.model.jobid import JobId

_K = TypeVar("_K")
SCHEMA = 1
_SCHEMA_KEY = "meta/schema"


class Ledger:
    """Reads the books once, then writes what changed, a transaction each time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self, now: float) -> Books:
        """Return the books. A record that cannot be read is listed, never deleted.

        Raises StoreError if a newer version of this program wrote the store.
        """
        records = self._store.load()
        self._check_schema(records.get(_SCHEMA_KEY))
        bursts: dict[BurstId, Burst] = {}
        holds: dict[JobId, Hold] = {}
        health: dict[str, Health] = {}
        outputs: dict[BurstId, str] = {}
        unreadable: dict[str, str] = {}
        for key, text in records.items():
            room, _, name = key.partition("/")
            try:
                if room == "burst":
                    bursts[BurstId(name)] = _read_burst(name, text, now)
                elif room == "hold":
                    holds[JobId(int(name))] = decode_hold(text)
                elif room == "provider":
                    health[name] = msgspec.json.decode(text, type=Health)
                elif room == "output":
                    outputs[BurstId(name)] = text
                elif room != "meta":
                    unreadable[key] = "not a kind of record that this program knows"
            except (RecordUnreadable, ValueError) as error:
                unreadable[key] = str(error)
        return Books(
            bursts=bursts,
            holds=holds,
            health=health,
            outputs=outputs,
            unreadable=unreadable,
        )

    def write(self, before: Books, after: Books) -> int:
        """Keep what differs, in one transaction; return how many records did.

        Raises StoreError and Unreadable; then nothing of it may be acted on.
        """
        changes: dict[str, str | None] = {}
        _differ(changes, "burst", before.bursts, after.bursts)
        _differ(changes, "hold", before.holds, after.holds)
        _differ(changes, "provider", before.health, after.health)
        _differ(changes, "output", before.outputs, after.outputs)
        if changes:
            self._store.write(changes)
        return len(changes)

    def _check_schema(self, text: str | None) -> None:
        if text is None:
            self._store.write({_SCHEMA_KEY: str(SCHEMA)})
        elif not text.isdigit() or int(text) != SCHEMA:
            raise StoreError(
                f"the store has schema {text!r}, this program knows {SCHEMA}",
                "run the version of burst that wrote it, or a newer one",
            )


def _read_burst(name: str, text: str, now: float) -> Burst:
    lease, events = decode_record(text)
    if lease.id != name:
        raise RecordUnreadable(f"its key is {name}, but it says that it is {lease.id}")
    burst = replay(lease, events)
    if burst.since > now:
        # The clock was set back: count its deadlines from now, not from a future.
        burst = msgspec.structs.replace(
            burst,
            since=now,
            idle_since=None if burst.idle_since is None else now,
            lost_since=None if burst.lost_since is None else now,
        )
    return burst


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
    if isinstance(value, Burst):
        return encode_record(value)
    if isinstance(value, Hold):
        return encode_hold(value)
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
