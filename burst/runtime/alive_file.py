# SPDX-License-Identifier: MIT
"""A file whose time says when the daemon last went on, for a liveness probe.

A probe that asks the daemon itself would fail while the lead is away, and have a daemon
restarted that does what it should: wait. Python would also cost the probe half a second
of a core each time; a file's time costs nothing.
"""

from __future__ import annotations

import logging
from pathlib import Path

from burst import log


class AliveFile:
    """Sets the time of a file. One that cannot be written is told of once."""

    def __init__(self) -> None:
        self._told = ""

    def touch(self, path: str) -> None:
        """Set the file's time to now; make it if it is not there. Empty: do nothing."""
        if not path:
            return
        try:
            Path(path).touch()
        except OSError as error:
            if str(error) != self._told:
                self._told = str(error)
                log.say(
                    "daemon.alive: %s; whoever looks at that file takes this daemon"
                    " for dead",
                    error,
                    level=logging.ERROR,
                )
        else:
            self._told = ""
