# SPDX-License-Identifier: MIT
"""The store as one SQLite file, for a lead that has no store of its own."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from burst.errors import StoreError
from burst.lead import MAX_VALUE_BYTES

_VERSION = 1
_KEY = re.compile(r"[A-Za-z0-9_/-]+\Z")
_WAIT_S = 5.0
_TABLE = "CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
_KEEP = "INSERT OR REPLACE INTO kept (key, value) VALUES (?, ?)"
_ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is something else: move it away, or choose another"
    " --statedir",
    sqlite3.SQLITE_CORRUPT: "bring it back from a backup, or move it away, which"
    " forgets every burst",
    sqlite3.SQLITE_FULL: "free some space on that disk",
    sqlite3.SQLITE_BUSY: "end the other program that has it open",
}


class FileStore:
    """burst.lead.Store in a file, which is made with mode 0600 if it is not there.

    The file is opened for each call, so a store may be used from any thread, and from
    several processes. Raises StoreError, here and in all methods.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(file, 0o600)
            finally:
                os.close(file)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}",
                "nothing could be recorded: give the lead a --statedir that its owner"
                " can write to",
            ) from error
        with self._transaction() as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise StoreError(
                    f"{path}: is of version {version}, this program knows {_VERSION}",
                    "run the version that wrote it",
                )
            database.execute(_TABLE)
            # Written each time, so that a full or read-only disk is found at the start.
            database.execute(f"PRAGMA user_version = {_VERSION}")

    def load(self) -> dict[str, str]:
        """Return all records."""
        with self._transaction() as database:
            return dict(database.execute("SELECT key, value FROM kept"))

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all these values, or none; None deletes the key."""
        for key, value in changes.items():
            _check(key, value)
        with self._transaction() as database:
            for key, value in changes.items():
                if value is None:
                    database.execute("DELETE FROM kept WHERE key = ?", (key,))
                else:
                    database.execute(_KEEP, (key, value))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database in a transaction: all changes are kept, or none."""
        # A file that was removed must not be made again, empty.
        uri = f"file:{quote(str(self._path.absolute()))}?mode=rw"
        try:
            database = sqlite3.connect(
                uri, timeout=_WAIT_S, isolation_level=None, uri=True
            )
            with closing(database):
                # The directory is synced too: a commit survives a power failure.
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise StoreError(
                f"{self._path}: cannot be used: {error}",
                _ADVICE.get(code, "look at its directory and at that disk"),
            ) from error


def _check(key: str, value: str | None) -> None:
    """Raise StoreError for what every store refuses."""
    if not _KEY.match(key):
        raise StoreError(f"not a key: {key!r}", "use letters, digits, -, _ and /")
    try:
        size = len((value or "").encode())
    except UnicodeEncodeError as error:
        raise StoreError(f"{key}: its value is not text: {error.reason}") from error
    if size > MAX_VALUE_BYTES:
        raise StoreError(
            f"{key}: its value has {size} bytes; {MAX_VALUE_BYTES} is the limit"
        )
