# SPDX-License-Identifier: MIT
"""The archive: all bursts that were settled, in a SQLite file in the lead's state.

The records keep the last settled bursts only. A burst's row is written here before it
leaves the records. If it is written twice, one row remains: its key is the burst's id
and the time when the burst was made, as ids are used again after years. No decision
depends on the archive: it answers `burst cost --by job` and `burst report`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from burst import log
from burst.core.money.ledger import SettledBurst
from burst.decode import from_json
from burst.errors import MALFORMED, StoreError
from burst.model.burst import BurstId
from burst.model.lead import LeadIdentity

NAME = "burst-ledger.sqlite"
"""Name of the file in the lead's statedir, or else beside its socket."""
MOST_ROWS = 10_000
"""The most bursts in one answer, which take a second to read and have megabytes."""
_VERSION = 1
_EMPTY = 0
"""The version that SQLite gives a file in which nothing was written yet."""
_WAIT_S = 5.0
_TABLE = """CREATE TABLE IF NOT EXISTS settled (
    burst TEXT NOT NULL, made REAL NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (burst, made))"""
_INDEX = "CREATE INDEX IF NOT EXISTS settled_made ON settled (made)"
_ADD = "INSERT OR REPLACE INTO settled (burst, made, row) VALUES (?, ?, ?)"
_COUNT = "SELECT count(*) FROM settled WHERE made >= ?"
_READ = "SELECT row FROM settled WHERE made >= ? ORDER BY made DESC LIMIT ?"
_ADVICE = "or move the file away: a new one is made"


class ArchivedRows(NamedTuple):
    """The rows that were read from the archive."""

    rows: list[SettledBurst]
    """The latest first."""
    left_out: int = 0
    """How many are left out: earlier ones beyond MOST_ROWS, and unreadable ones."""


def archive_path(lead: LeadIdentity) -> Path:
    """Return where the archive is: in the lead's state directory, beside its store.

    A lead without a statedir keeps its records only while it runs, and so this file.
    """
    beside = Path(urlsplit(lead.uri).path).parent
    return Path(lead.statedir or beside) / NAME


class LedgerArchive:
    """The file of the archive. Each call opens it, so any thread may call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, rows: Iterable[SettledBurst]) -> None:
        """Write these rows; each replaces an earlier row of the same burst.

        Returns once they survive a crash of the machine. Raises StoreError.
        """
        values = [
            (each.burst, each.made, msgspec.json.encode(each).decode()) for each in rows
        ]
        self._make()
        with self._open("rwc") as database:
            # The directory is synced too: a commit survives a power failure.
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("BEGIN IMMEDIATE")
            self._check(database)
            database.execute(_TABLE)
            database.execute(_INDEX)
            database.execute(f"PRAGMA user_version = {_VERSION}")
            database.executemany(_ADD, values)
            database.execute("COMMIT")

    def read(self, since: float, most: int = MOST_ROWS) -> ArchivedRows:
        """Return the bursts made at that time or later; none if none was written yet.

        In that case there is no file, or an empty one, which a write to a full disk
        leaves. Raises StoreError.
        """
        if not self.path.exists():
            return ArchivedRows([])
        with self._open("ro") as database:
            if self._check(database) == _EMPTY:
                return ArchivedRows([])
            (count,) = database.execute(_COUNT, (since,)).fetchone()
            texts = [text for (text,) in database.execute(_READ, (since, most))]
        rows = [row for text in texts if (row := _decoded(text)) is not None]
        return ArchivedRows(rows, count - len(rows))

    def check(self) -> None:
        """Raise StoreError if the file is there, and this user cannot write it."""
        # Path.exists raises an error in a directory that may not be searched.
        if os.path.exists(self.path):
            self._make()

    def _make(self) -> None:
        """Make the file, which only its owner may read, unless it is there."""
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StoreError(
                f"{self.path}: cannot be written: {error.strerror}",
                f"let the daemon's user write there, {_ADVICE}",
            ) from error

    def _check(self, database: sqlite3.Connection) -> int:
        """Return the file's version, which is written together with the table."""
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise StoreError(
                f"{self.path}: has version {version}, this program knows {_VERSION}",
                f"run the version that wrote it, {_ADVICE}",
            )
        return int(version)

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        try:
            database = sqlite3.connect(
                uri, timeout=_WAIT_S, isolation_level=None, uri=True
            )
            with closing(database):
                yield database
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: cannot be used: {error}", f"repair it, {_ADVICE}"
            ) from error


def _decoded(text: str) -> SettledBurst | None:
    try:
        return from_json(text, SettledBurst)
    except MALFORMED:
        return None


RETRY_S = 60.0
"""Seconds until a failed write is repeated; a full disk seldom has room sooner."""
_CLOSE_S = 1.0


class LedgerArchiver:
    """Writes settled bursts into the archive, on a thread of its own.

    A slow or full disk delays no tick: a burst stays in the records until `archived`
    says that its row is written. Bursts that the thread has not written when the daemon
    ends are still in the records, and the next daemon writes them.
    Call all methods from the engine's thread.
    """

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
                    log.warn(text, error)
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
