# SPDX-License-Identifier: MIT
"""What a package adds to the running daemon (entry point group `burst.daemon`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from burst.lead import Lead, ServiceRequest
from burst.runtime.service_answers import Row
from burst.runtime.snapshot import Snapshot

Method = Callable[[ServiceRequest, Snapshot], Row]
"""A method of the service `burst`, on any thread. Raises BurstError."""
CallService = Callable[[str, dict[str, Any]], Row]
"""Calls a method of the service with a payload. Raises BurstError."""


class PackageHost(NamedTuple):
    """What a package is given of a session with a lead."""

    snapshot: Callable[[], Snapshot]
    """Returns what the last tick saw and decided. From any thread."""
    lead: Lead
    """The lead. Its shared store is for the package's own records, under keys of other
    kinds than the daemon's (`burst.runtime.record_store`)."""
    clock: Callable[[], float]
    """Returns the seconds since the epoch, by the clock of the ticks."""
    call: CallService
    """Calls the service `burst` as the instance owner. Not from the daemon's thread."""


class RunningPackage(Protocol):
    """A package that runs as long as the session."""

    def methods(self) -> Mapping[str, Method]:
        """Return further methods of the service; only the owner may call them."""
        ...

    def start(self) -> None:
        """Start, as the daemon now serves the lead."""
        ...

    def close(self) -> None:
        """End. What is on record stays."""
        ...


DaemonPackage = Callable[[PackageHost], RunningPackage]
"""What the entry point names; called once for each session."""
