# SPDX-License-Identifier: MIT
"""What a package adds to the running daemon (entry point group `burst.daemon`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from burst.core.records import Records
from burst.lead import Lead, ServiceRequest
from burst.model.burst import BurstId
from burst.runtime.engine import Engine, EngineCommand
from burst.runtime.service_answers import Row
from burst.runtime.snapshot import Snapshot

CarryOut = Callable[[EngineCommand], Row]
"""Has the next tick carry out a command, and waits for it."""
Method = Callable[[ServiceRequest, Snapshot], Row]
"""A method of the service `burst`, on any thread. Raises BurstError."""


class PackageHost(NamedTuple):
    """What a package is given of a session with a lead."""

    engine: Callable[[], Engine]
    lead: Lead
    wake: Callable[[], None]
    """Has the next tick taken now. From any thread."""
    clock: Callable[[], float]
    """Seconds since the epoch, as ticks have them."""


class RunningPackage(Protocol):
    """What runs as long as the session. `needed` is called by the daemon's thread."""

    def methods(self, carry_out: CarryOut) -> Mapping[str, Method]:
        """Return further methods of the service; only the owner may call them."""
        ...

    def start(self) -> None:
        """Begin, as the daemon serves the lead."""
        ...

    def needed(self, records: Records) -> frozenset[BurstId]:
        """Return bursts whose record is still needed once they have ended."""
        ...

    def close(self) -> None:
        """End. What is on record stays."""
        ...


DaemonPackage = Callable[[PackageHost], RunningPackage]
"""What the entry point names; called once for each session."""
