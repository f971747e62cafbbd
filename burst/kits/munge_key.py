# SPDX-License-Identifier: MIT
"""Reads the key of the lead's munged, for followers that need it (munged(8))."""

from __future__ import annotations

from pathlib import Path

from burst.errors import Refused

# The sizes in bytes that munged accepts.
_LEAST, _MOST = 32, 1024


def read_munge_key(path: str) -> bytes:
    """Return the key in the file that the setting `munge_key` names. Raises Refused."""
    try:
        key = Path(path).read_bytes()
    except OSError as error:
        raise Refused(
            f"munge_key: {path} cannot be read: {error.strerror}",
            "copy the lead's key to a file that only the daemon's user can read",
        ) from error
    if not _LEAST <= len(key) <= _MOST:
        raise Refused(
            f"munge_key: {path} has {len(key)} bytes, and a munge key has {_LEAST} to"
            f" {_MOST}",
            "name the file that the lead's munged reads",
        )
    return key
