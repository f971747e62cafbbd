# SPDX-License-Identifier: MIT
"""The lead's store for the daemon's records: a file of JSON, written anew each time."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from burst.decode import from_json
from burst.errors import StoreError
from burst.kits.atomic_file import write_atomically
from burst.lead import MAX_VALUE_BYTES

STORE = "burst.json"
"""Name of the file in the lead's statedir, or else in its rundir."""
_BEFORE = "burst.sqlite"
"""Name of the file that leads had before."""
_KEY = re.compile(r"[A-Za-z0-9_/-]+\Z")


class FileStore:
    """burst.lead.Store in a file of mode 0600. Raises StoreError."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / STORE
        try:
            self._kept = _read(self._path)
        except (OSError, msgspec.MsgspecError, sqlite3.Error) as error:
            raise StoreError(
                f"{self._path}: cannot be read: {error}",
                "bring it back from a backup, or move it away, which forgets every"
                " burst",
            ) from error
        # So that a disk that takes nothing is found at the start.
        self.write({})

    def load(self) -> dict[str, str]:
        """Return all records."""
        return self._kept

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all these values, or none; None deletes the key."""
        for key, value in changes.items():
            _check(key, value or "")
        merged = {**self._kept, **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        try:
            write_atomically(self._path, msgspec.json.encode(kept), private=True)
        except OSError as error:
            raise StoreError(
                f"{self._path}: cannot be written: {error.strerror}",
                "free some space there, or give the lead a --statedir that its owner"
                " can write to",
            ) from error
        self._kept = kept


def _read(path: Path) -> dict[str, str]:
    before = path.with_name(_BEFORE)
    if path.exists():
        return from_json(path.read_bytes(), dict[str, str])
    if before.exists():
        with closing(sqlite3.connect(before)) as database:
            return dict(database.execute("SELECT key, value FROM kept"))
    return {}


def _check(key: str, value: str) -> None:
    """Raise StoreError for what every store refuses."""
    if not _KEY.match(key):
        raise StoreError(f"not a key: {key!r}", "use letters, digits, -, _ and /")
    size = len(value.encode())
    if size > MAX_VALUE_BYTES:
        raise StoreError(
            f"{key}: its value has {size} bytes; {MAX_VALUE_BYTES} is the limit"
        )
