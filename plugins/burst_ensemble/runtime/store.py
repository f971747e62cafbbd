# SPDX-License-Identifier: MIT
"""Keep the records of ensembles in the lead's store, beside the daemon's.

| key | record |
|---|---|
| `ensemble-run/ENSEMBLE` | `EnsembleRecord` without its members |
| `ensemble-member/ENSEMBLE/MEMBER` | `MemberRecord` without its jobs |
| `ensemble-jobs/ENSEMBLE/MEMBER` | `MemberRecord.jobs` |
| `ensemble-start/ENSEMBLE` | `EnsembleStart` |
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from burst import log
from burst.config.convert import convert
from burst.decode import from_json
from burst.errors import ConfigError, StoreError
from burst.lead import Store
from burst.model.jobid import JobId
from burst_ensemble.core.record import (
    Ensemble,
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    MemberRecord,
    plain_duration,
)

_STATE, _START = "ensemble-run", "ensemble-start"
_MEMBER, _JOBS = "ensemble-member", "ensemble-jobs"


class EnsembleStore:
    """Reads the records once, then writes changes. Use it from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._records: EnsembleRecords | None = None
        self._kept: dict[str, object] = {}
        """The value that the store has, by key; None if that is not known."""
        self.unread: frozenset[str] = frozenset()
        """The ensembles whose records could not be read; one of them may have been
        started again since."""
        self._closed = False

    def close(self) -> None:
        """Refuse all further changes, in threads that still run, too.

        From now on another session or another daemon may have read the records.
        """
        self._closed = True

    def read(self) -> EnsembleRecords:
        """Return the ensembles that are on record.

        The first call reads the store, and may raise StoreError or Unreadable.
        """
        found = self._records
        if found is None:
            with self._lock:
                found = self._load()
        return found

    def change(
        self, make: Callable[[EnsembleRecords], EnsembleRecords]
    ) -> EnsembleRecords:
        """Replace the records with what `make` returns for them, and return these.

        Changes of all threads follow one another. A value that is as before is not
        written: the lead's disk keeps each that was. Raises what `make` raises,
        StoreError and Unreadable: then the caller must not act on any of the change.
        """
        with self._lock:
            if self._closed:
                raise StoreError(
                    "the session with the lead ends: nothing about ensembles is"
                    " recorded any more",
                    "try again once the daemon serves the lead",
                )
            after = make(self._load())
            self._write(_by_key(after))
            self._records = after
            return after

    def change_run(
        self, start: EnsembleStart, make: Callable[[EnsembleRecord], EnsembleRecord]
    ) -> None:
        """Replace the record of one run of an ensemble, as `change` does.

        Nothing is changed if it is no longer on record, or was started again.
        """

        def change_one(current: EnsembleRecords) -> EnsembleRecords:
            one = current.get(start.spec.name)
            if one is None or one.start is not start:
                return current
            return {**current, start.spec.name: Ensemble(start, make(one.record))}

        self.change(change_one)

    def _load(self) -> EnsembleRecords:
        if self._records is not None:
            return self._records
        texts = self._store.load()
        self._records = _decode(texts)
        self.unread = _names(texts) - self._records.keys()
        self._kept = _by_key(self._records)
        return self._records

    def _write(self, after: dict[str, object]) -> None:
        changes = {
            key: msgspec.json.encode(value, enc_hook=plain_duration).decode()
            for key, value in after.items()
            if self._kept.get(key) != value
        }
        gone = dict.fromkeys(self._kept.keys() - after.keys())
        if not changes and not gone:
            return
        # Until the store has answered, it may have the old or the new values: a later
        # write repeats these keys.
        self._kept |= dict.fromkeys([*changes, *gone])
        self._store.write({**changes, **gone})
        self._kept = after


def _by_key(ensembles: EnsembleRecords) -> dict[str, object]:
    """Return the records by key.

    Each member has its own, as a value has a limit. Its jobs are apart, because its
    costs change more often.
    """
    found: dict[str, object] = {}
    for name, one in ensembles.items():
        found[f"{_STATE}/{name}"] = msgspec.structs.replace(one.record, members={})
        found[f"{_START}/{name}"] = one.start
        for member, record in one.record.members.items():
            own = msgspec.structs.replace(record, jobs={})
            found[f"{_MEMBER}/{name}/{member}"] = own
            found[f"{_JOBS}/{name}/{member}"] = record.jobs
    return found


def _names(texts: Collection[str]) -> frozenset[str]:
    """Return the ensembles that have a record among these keys."""
    split = (key.split("/") for key in texts)
    return frozenset(words[1] for words in split if words[0] in {_STATE, _START})


def _decode(texts: Mapping[str, str]) -> EnsembleRecords:
    """Return the ensembles in the store. One that cannot be read, or lacks a record, is
    logged and left in the store.
    """
    found = {}
    for name in sorted(_names(texts)):
        try:
            found[name] = _decode_one(name, texts)
        except (msgspec.MsgspecError, ConfigError, KeyError) as error:
            log.say(
                "ensemble %s cannot be read from its records: %s; it ends, and can be"
                " started again (burst ensemble up)",
                name,
                f"{error} is missing" if isinstance(error, KeyError) else error,
                level=logging.WARNING,
            )
    return found


def _decode_one(name: str, texts: Mapping[str, str]) -> Ensemble:
    key = f"{_START}/{name}"
    start = convert(EnsembleStart, from_json(texts[key], dict[str, Any]), key)
    record = from_json(texts[f"{_STATE}/{name}"], EnsembleRecord)
    members = {}
    for each in (spec.name for spec in start.spec.members):
        own, jobs = f"{_MEMBER}/{name}/{each}", f"{_JOBS}/{name}/{each}"
        members[each] = msgspec.structs.replace(
            from_json(texts[own], MemberRecord),
            jobs=from_json(texts[jobs], dict[JobId, KnownJob]),
        )
    return Ensemble(start, record.with_members(members))
