# SPDX-License-Identifier: MIT
"""What runs beside the ticks of an engine on threads of its own, and the tally."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from burst import log
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import LeadError, LeadGone, StoreError
from burst.model.banks import NOT_VERIFIED
from burst.model.subuids import NO_SUBUIDS
from burst.runtime.bank_reader import BankReader
from burst.runtime.forecast_pass import Forecasts
from burst.runtime.forecaster import Forecaster
from burst.runtime.ledger_archive import LedgerArchive, LedgerArchiver
from burst.runtime.notifier import Notifier
from burst.runtime.record_store import RecordStore
from burst.runtime.snapshot import Snapshot
from burst.runtime.subuid_file import SubuidFile
from burst.runtime.tally import Tally


class SideThreads(NamedTuple):
    """Helpers of an engine. Each may be None; then the engine does without it."""

    forecaster: Forecaster | None = None
    archiver: LedgerArchiver | None = None
    banks: BankReader | None = None
    tally: Tally | None = None
    notifier: Notifier | None = None
    subuids: SubuidFile | None = None
    """It has no thread: it is read in each tick."""

    @property
    def archive(self) -> LedgerArchive | None:
        """The archive of settled bursts; None if there is none."""
        return self.archiver.archive if self.archiver else None

    def restore(self, store: RecordStore) -> None:
        """Have the helpers load what the store has for them."""
        if self.forecaster is not None:
            self.forecaster.restore(store.forecast_texts)
        if self.notifier is not None:
            self.notifier.restore(store.notice_text)

    def forecasts(self) -> Forecasts | None:
        """Return the last forecasts; None where none are made."""
        return self.forecaster.current() if self.forecaster else None

    def add_to(self, world: World, forecasts: Forecasts | None = None) -> World:
        """Return the world with what the helpers know.

        The forecasts are added only if the lead was read.
        """
        if world.lead is not None and forecasts is not None:
            starts = forecasts.judged.starts
            times = forecasts.run_times
            world = msgspec.structs.replace(world, forecasts=starts, run_times=times)
        if self.forecaster is not None:
            owed = self.forecaster.owed_since()
            world = msgspec.structs.replace(world, forecast_owed_since=owed)
        return msgspec.structs.replace(
            world,
            subuids=self.subuids.current() if self.subuids else NO_SUBUIDS,
            banks=self.banks.current() if self.banks else NOT_VERIFIED,
            accounting=self.banks.facts() if self.banks else None,
            archived=self.archiver.archived if self.archiver else None,
        )

    def tell(self, snapshot: Snapshot, result: TickResult, store: RecordStore) -> None:
        """Give the helpers what a tick saw and recorded; store what they learned.

        Raises LeadGone.
        """
        if self.archiver is not None:
            self.archiver.keep(snapshot.records.settled)
        self._tell_notices(snapshot, store)
        if self.forecaster is None:
            return
        self.forecaster.observe(snapshot.records, snapshot.world, result)
        texts = self.forecaster.take_texts()
        if texts:
            _write(
                lambda: store.write_forecast(texts),
                "cannot store what forecasts have learned: %s",
                logging.INFO,
            )

    def _tell_notices(self, snapshot: Snapshot, store: RecordStore) -> None:
        """Have the due notices told; store which were told."""
        notifier = self.notifier
        text = notifier.tick(snapshot) if notifier is not None else None
        if notifier is None or text is None:
            return
        trouble = "cannot store which notices were sent: %s"
        if _write(lambda: store.write_notices(text), trouble, logging.WARNING):
            notifier.stored()


def _write(write: Callable[[], None], trouble: str, level: int) -> bool:
    """Write, and tell whether that worked; log the trouble. Raises LeadGone."""
    try:
        write()
    except LeadGone:
        raise
    except (StoreError, LeadError) as error:
        log.say(trouble, error, level=level)
        return False
    return True


NO_SIDE_THREADS = SideThreads()
