# SPDX-License-Identifier: MIT
"""A file whose time says when the daemon was last alive, for a liveness probe.

A probe that asks the daemon itself would fail while the lead is away, and so restart a
daemon that rightly waits. It would also start Python each time, which takes half a
second of a core; reading a file's time costs nothing.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from burst import log

# As the clock may be set meanwhile, and a deadline may be infinite.
_LONGEST_S = 86400.0


class AliveFile:
    """Sets the time of a file, and logs each new error of that once."""

    def __init__(self) -> None:
        self._told = ""

    def touch(self, path: str, busy_s: float = 0.0) -> None:
        """Set the file's time to now, and make the file if it is missing.

        Set it `busy_s` seconds ahead if it will not be touched sooner. An empty path
        does nothing.
        """
        if not path:
            return
        try:
            Path(path).touch()
            if busy_s:  # only the file's owner may set such a time
                until = time.time() + min(busy_s, _LONGEST_S)
                os.utime(path, (until, until))
        except OSError as error:
            if str(error) != self._told:
                self._told = str(error)
                log.say(
                    "daemon.alive: %s; a check of that file takes this daemon for dead",
                    error,
                    level=logging.ERROR,
                )
        else:
            self._told = ""
