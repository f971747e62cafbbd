# SPDX-License-Identifier: MIT
"""The lead's store for the daemon's records: a JSON file, rewritten at each change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from burst.decode import from_json
from burst.errors import StoreError
from burst.flux.store import check_record
from burst.kits.atomic_file import write_atomically

STORE = "burst.json"
"""Name of the file in the lead's statedir, or else in its rundir."""


class FileStore:
    """A `burst.lead.Store` in a file of mode 0600. Raises StoreError.

    A write does not wait for the disk, because the lead would serve no one meanwhile.
    The records survive the end of the lead, but not a crash of its machine.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / STORE
        try:
            text = self._path.read_bytes() if self._path.exists() else b"{}"
            self._kept = from_json(text, dict[str, str])
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self._path}: cannot be read: {error}",
                "restore it from a backup; or move it away, which forgets every burst",
            ) from error

    def load(self) -> dict[str, str]:
        """Return all records."""
        return self._kept

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all of these values, or none; None deletes the key."""
        for key, value in changes.items():
            check_record(key, value)
        merged = {**self._kept, **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        try:
            text = msgspec.json.encode(kept)
            write_atomically(self._path, text, private=True, sync=False)
        except OSError as error:
            raise StoreError(
                f"{self._path}: cannot be written: {error.strerror}",
                "free some space there, or give the lead a --statedir that its owner"
                " can write to",
            ) from error
        self._kept = kept
