# SPDX-License-Identifier: MIT
"""The state of the daemon, for those who ask over HTTP, for probes and for systemd."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from burst import log
from burst.lead import ServiceRequest
from burst.model.fsd import format_fsd
from burst.runtime.daemon_package import RunningPackage
from burst.runtime.snapshot import Snapshot
from burst.runtime.tally import Tally

_SILENT_S = 300.0
"""Seconds in addition to the announced pause after which a daemon without a beat counts
as stuck. Calls of the lead and writes to its store end earlier, by their own timeouts.
"""


class Served(NamedTuple):
    """The lead that is served now."""

    snapshot: Callable[[], Snapshot]
    """Returns the last snapshot."""
    process: Mapping[str, Any]
    """As `describe_process` returns it."""
    answer: Callable[[ServiceRequest], dict[str, Any]]
    """Answers a request to the service `burst`, which may take as long as a tick.

    Raises BurstError, Denied.
    """
    packages: Mapping[str, RunningPackage] = {}
    """What other packages run beside the daemon, by the name of their entry point."""


class DaemonState:
    """The state of the daemon while it ticks or waits.

    `beat`, `serve` and `lose` belong to the daemon's thread, the rest to any; neither
    waits for the other.
    """

    def __init__(
        self, tally: Tally, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tally = tally
        self._clock = clock
        self._served: Served | None = None
        self._trouble = "no lead was reached yet"
        self._beat = clock(), 0.0

    def beat(self, pause: float) -> None:
        """Note that the daemon goes on, and again after at most `pause` seconds.

        It is about to tick, waits for its lead, or deletes the bursts of a lost one.
        """
        self._beat = self._clock(), pause

    def serve(self, served: Served) -> None:
        """Note which lead is served from now on."""
        self._served = served

    def lose(self, why: str) -> None:
        """Note that no lead is served."""
        # Set first: another thread that finds no lead reads why.
        self._trouble = why
        self._served = None

    @property
    def served(self) -> Served | None:
        """The lead that is served; None while there is none."""
        return self._served

    def why_stuck(self) -> str:
        """Return a text on how long the daemon has been stuck; empty if it is not."""
        at, pause = self._beat
        silent = self._clock() - at
        if silent <= _SILENT_S + pause:
            return ""
        return f"the daemon has made no progress for {format_fsd(round(silent))}"

    def why_lead_away(self) -> str:
        """Return why no lead is served or it cannot be read; empty if all is well."""
        served = self._served
        if served is None:
            return self._trouble
        world = served.snapshot().world
        return "" if world.lead else f"the lead cannot be read: {world.trouble}"

    def why_not_ready(self) -> str:
        """Return why the daemon decides nothing now; empty if it does."""
        served, away = self._served, self.why_lead_away()
        trouble = served.snapshot().world.halt if served else None
        return away or (trouble.text() if trouble else "")


# As the clock may be set meanwhile, and a deadline may be infinite.
_LONGEST_S = 86400.0


class AliveFile:
    """A file whose time says when the daemon was last alive, for a liveness probe.

    A probe that asks the daemon itself would fail while the lead is away, and so
    restart a daemon that rightly waits. It would also start Python each time, which
    takes half a second of a core; reading a file's time costs nothing.
    Each new error is logged once.
    """

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


def tell_ready() -> None:
    """Tell systemd once that the daemon serves, if it asks for it: NOTIFY_SOCKET.

    It asks by Type=notify (sd_notify(3)), so that a user who starts the unit, or a unit
    that starts after it, can ask the daemon at once.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        # Abstract: unix(7).
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying:
            notifying.sendto(b"READY=1", address)
    except OSError as error:
        text = "cannot tell systemd that the daemon is ready: %s"
        log.say(text, error, level=logging.ERROR)
