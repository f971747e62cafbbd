# SPDX-License-Identifier: MIT
"""Writes settled bursts into the archive, on a thread of its own.

A slow or full disk delays no tick: a burst stays in the records until `archived` says
that its row is written. Bursts that the thread has not written when the daemon ends are
still in the records, and the next daemon writes them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from burst import log
from burst.core.worth.ledger import SettledBurst
from burst.errors import StoreError
from burst.model.burst import BurstId
from burst.runtime.ledger_archive import LedgerArchive

RETRY_S = 60.0
"""Seconds until a failed write is repeated; a full disk seldom has room sooner."""
_CLOSE_S = 1.0


class LedgerArchiver:
    """Runs the thread. Call all methods from the engine's thread."""

    def __init__(self, archive: LedgerArchive, retry: float = RETRY_S) -> None:
        self._archive, self._retry = archive, retry
        self._news = threading.Condition()
        # All below are read and written with `_news` held.
        self._settled: Mapping[BurstId, SettledBurst] = {}
        self._archived: Mapping[BurstId, float] = {}
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def archive(self) -> LedgerArchive:
        """The archive that the thread writes to."""
        return self._archive

    @property
    def archived(self) -> Mapping[BurstId, float]:
        """The settled bursts on record that are archived, and when each was made."""
        with self._news:
            return self._archived

    def keep(self, settled: Mapping[BurstId, SettledBurst]) -> None:
        """Have all settled bursts that are on record now archived. Returns at once."""
        with self._news:
            if settled is self._settled:
                return
            self._settled = settled
            self._news.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="ledger-archiver", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End the thread after the write under way; wait a moment for that."""
        with self._news:
            self._closing = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        said = ""
        while self._wait():
            with self._news:
                settled, known = self._settled, self._archived
            try:
                self._archive.add(
                    row for name, row in settled.items() if known.get(name) != row.made
                )
            except StoreError as error:
                if str(error) != said:
                    text = "bursts that were settled are not archived: %s"
                    log.say(text, error, level=logging.WARNING)
                said = str(error)
                self._pause()
                continue
            if said:
                said = ""
                log.say("bursts that were settled are archived again")
            with self._news:
                self._archived = {name: row.made for name, row in settled.items()}

    def _wait(self) -> bool:
        """Wait until there is something to write; False to end."""
        with self._news:
            self._news.wait_for(lambda: self._closing or self._missing())
            return not self._closing

    def _pause(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._closing, self._retry)

    def _missing(self) -> bool:
        known = self._archived
        return any(known.get(name) != row.made for name, row in self._settled.items())
