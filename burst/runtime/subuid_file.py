# SPDX-License-Identifier: MIT
"""The host's subuid(5), read again whenever the file has changed."""

from __future__ import annotations

from pathlib import Path

from burst import log
from burst.model.subuids import Subuids, parse_subuids

SUBUIDS = Path("/etc/subuid")


class SubuidFile:
    """Reads one file. For one thread."""

    def __init__(self, path: Path = SUBUIDS) -> None:
        self._path = path
        self._found = Subuids()
        self._state: tuple[int, int, int] | str = ""
        self._known = False
        """Whether the file could ever be read."""

    def current(self) -> Subuids:
        """Return the present ranges; none if there is no such file.

        If the file cannot be read, return the last ranges or none, and log that once.
        """
        try:
            status = self._path.stat()
            state = status.st_mtime_ns, status.st_size, status.st_ino
            if state != self._state:
                self._found = parse_subuids(self._path.read_text(errors="replace"))
                self._state, self._known = state, True
        except FileNotFoundError:
            self._found, self._state = Subuids(), ""
        except OSError as error:
            if self._state != str(error):
                what = (
                    "they stay as they were" if self._known else "they count as users"
                )
                text = "cannot read subordinate user ids, so %s: %s"
                log.warn(text, what, error)
            self._state = str(error)
        return self._found
