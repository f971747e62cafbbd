# SPDX-License-Identifier: MIT
"""The state of the daemon, for those who ask over HTTP while it ticks or waits.

The daemon's thread writes, any thread reads; neither waits for the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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
    """`beat`, `serve` and `lose` belong to the daemon's thread, the rest to any."""

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
