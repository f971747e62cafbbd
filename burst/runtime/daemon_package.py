# SPDX-License-Identifier: MIT
"""What a package adds to the running daemon (entry point group `burst.daemon`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from burst.config import Settings
from burst.core.records import Records
from burst.core.tick import TickResult
from burst.core.world import World
from burst.lead import Lead, ServiceRequest
from burst.model.burst import BurstId
from burst.runtime.engine import EngineCommand
from burst.runtime.service_answers import Row
from burst.runtime.snapshot import Snapshot

RecordChange = Callable[[Records, World, float], tuple[Records, Any]]
"""A pure function of what is on record, what was read, and the time: records of which
`packages` are kept, and an answer."""
ChangeRecords = Callable[[RecordChange], Any]
"""Has the next tick keep what a change returns, and waits for it; returns the answer.

Raises what the change raises, and Late. Not from the daemon's thread."""
Method = Callable[[ServiceRequest, Snapshot], Row]
"""A method of the service `burst`, on any thread. Raises BurstError."""
CallService = Callable[[str, dict[str, Any]], Row]
"""Calls a method of the service with a payload. Raises BurstError."""


class PackageHost(NamedTuple):
    """What a package is given of a session with a lead."""

    snapshot: Callable[[], Snapshot]
    """Returns what the last tick saw and decided. From any thread."""
    lead: Lead
    change_records: ChangeRecords
    clock: Callable[[], float]
    """Seconds since the epoch, as ticks have them."""
    call: CallService
    """Calls the service `burst` as the instance owner. Not from the daemon's thread."""


class RunningPackage(Protocol):
    """What runs as long as the session. `needed` is called by the daemon's thread."""

    def methods(self) -> Mapping[str, Method]:
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


def as_command(change: RecordChange) -> EngineCommand:
    """Return the command by which a change of a package's records is carried out."""

    def command(
        records: Records, world: World, _: Settings, now: float
    ) -> tuple[TickResult, Any]:
        changed, answer = change(records, world, now)
        after = msgspec.structs.replace(records, packages=changed.packages)
        made = TickResult(records=after, events=(), actions=(), decisions={})
        return made, answer

    return command
