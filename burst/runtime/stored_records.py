# SPDX-License-Identifier: MIT
"""The records that the engine decides on, and those that the store has.

No action begins before the store has its intent. While the store refuses the records,
what happened is kept here until the store takes it.
"""

from __future__ import annotations

import logging

from burst import log
from burst.config import LimitSettings
from burst.core.actions import FREEING
from burst.core.record_size import without_oversized
from burst.core.tick import TickResult
from burst.core.world import Halt
from burst.errors import (
    MALFORMED,
    BurstError,
    LeadGone,
    RecordTooLarge,
    StoreError,
    Unreadable,
)
from burst.lead import Store
from burst.runtime.clock import ClockMark
from burst.runtime.record_store import RecordStore

_ADVICE = (
    "see whether the disk of the lead's state is full (flux getattr statedir); if it"
    " has room and `flux kvs put x=1` hangs, restart the lead: Flux's KVS does not"
    " recover by itself, and what hangs with it has to be killed"
)


class StoredRecords:
    """The records of one engine. For one thread."""

    def __init__(self, store: Store, now: float, limits: LimitSettings) -> None:
        """Read the records. Raises StoreError and Unreadable."""
        self.store = RecordStore(store)
        self.now = self.store.load(now, limits)
        """The present records, whether the store has them or not."""
        self.trouble: Halt | None = None
        """Why the store does not take the records; None if it does."""
        self._stored = self.now

    def reload(self, now: float, limits: LimitSettings, clock: ClockMark) -> None:
        """Read the records again: see `RecordStore.load`.

        Raises StoreError, Unreadable.
        """
        self.now = self._stored = self.store.load(now, limits, clock)
        for key, why in self.now.unreadable.items():
            log.warn(
                "record %s cannot be read: %s; its burst stays as it is until"
                " burst down or burst gc --yes deletes it",
                key,
                why,
            )

    def keep(self, result: TickResult, now: float) -> TickResult:
        """Store what changed; return the result that may be acted on.

        That result leaves out records that are too large for a store. A result that
        only frees is returned even if the store refuses it. Raises LeadGone, and
        StoreError or Unreadable if the store refuses any other result: then nothing of
        it may be acted on.
        """
        try:
            result = self._write(result, now)
        except LeadGone:
            raise
        except (StoreError, Unreadable) as error:
            self._note(error, now)
            frees = all(isinstance(action, FREEING) for action in result.actions)
            if result.begins or not frees:
                raise
        else:
            if self.trouble is not None:
                log.say("the store takes the records again")
            self.trouble = None
        return result

    def _write(self, result: TickResult, now: float) -> TickResult:
        try:
            result = self._write_what_fits(result, now)
        except MALFORMED as error:
            # A defect. If it ended the daemon, each restart could meet it again.
            if self.trouble is None:
                log.failure("a record cannot be encoded")
            why = f"{type(error).__name__}, which the daemon's log has in full"
            raise StoreError(f"a record cannot be encoded: {why}") from error
        self._stored = result.records
        return result

    def _write_what_fits(self, result: TickResult, now: float) -> TickResult:
        try:
            self.store.write(self._stored, result.records)
        except RecordTooLarge as error:
            log.say("%s", error, level=logging.ERROR)
            result = without_oversized(result, self.now, error.records, now)
            self.store.write(self._stored, result.records)
        return result

    def _note(self, error: BurstError, now: float) -> None:
        since = self.trouble.since if self.trouble else now
        if self.trouble is None:
            log.say(
                "the records cannot be written: %s; until they can, the daemon begins"
                " nothing, and takes down what is idle",
                error,
                level=logging.ERROR,
            )
        self.trouble = Halt("writing to the store", since, str(error), _ADVICE)
