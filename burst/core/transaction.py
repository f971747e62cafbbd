# SPDX-License-Identifier: MIT
"""The books while a tick writes in them, and what the tick wants done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from burst.core import lifecycle
from burst.core.provider_health import Health
from burst.core.world import Books
from burst.model.burst import Burst, BurstId, Lease, State
from burst.model.event import Event
from burst.model.hold import HoldState
from burst.model.jobid import JobId

_K = TypeVar("_K")
_V = TypeVar("_V")


class Provision(msgspec.Struct, frozen=True):
    """Have the provider begin, or go on. The intent is on record by then."""

    burst: BurstId


class Reap(msgspec.Struct, frozen=True):
    """Have the provider delete it. Nothing runs on its ranks, nor can start there."""

    burst: BurstId


class Drain(msgspec.Struct, frozen=True):
    """Have no new job start on these ranks of ours."""

    ranks: frozenset[int]
    reason: str


class Undrain(msgspec.Struct, frozen=True):
    """Let jobs start again on ranks that we drained."""

    burst: BurstId
    ranks: frozenset[int]


class HoldJobs(msgspec.Struct, frozen=True):
    """Set urgency 0. What it was before is on record by then."""

    jobs: tuple[JobId, ...]


class ReleaseJobs(msgspec.Struct, frozen=True):
    """Give jobs an urgency back."""

    urgencies: dict[JobId, int]


class MoveJobs(msgspec.Struct, frozen=True):
    """Put jobs into other queues; each name is where the job goes."""

    queues: dict[JobId, str]


class FailJob(msgspec.Struct, frozen=True):
    """Raise a fatal exception on a job that nothing can ever help."""

    job: JobId
    reason: str


class EndJob(msgspec.Struct, frozen=True):
    """Tell a held job what came of it elsewhere, then end it here."""

    job: JobId
    memo: dict[str, str]
    reason: str


Action = (
    Provision
    | Reap
    | Drain
    | Undrain
    | HoldJobs
    | ReleaseJobs
    | MoveJobs
    | FailJob
    | EndJob
)


class Page(dict[_K, _V]):
    """A copy of one of the books' mappings that knows whether it was written in."""

    changed = False

    def __setitem__(self, key: _K, value: _V) -> None:
        self.changed = True
        super().__setitem__(key, value)

    def __delitem__(self, key: _K) -> None:
        self.changed = True
        super().__delitem__(key)


class Draft:
    """A copy of the books to be changed, the events that changed it, the actions.

    Nothing of it is true before the store has it.
    """

    def __init__(self, books: Books, now: float) -> None:
        self.now = now
        self._before = books
        self.bursts = Page(books.bursts)
        self.holds = Page(books.holds)
        self.health = Page(books.health)
        self.outputs = Page(books.outputs)
        self.events: list[tuple[BurstId, Event]] = []
        self.actions: list[Action] = []

    def books(self) -> Books:
        """Return the books as they are to be kept; what did not change is the same."""
        before = self._before
        health = {name: h for name, h in self.health.items() if not h.spotless}
        return Books(
            bursts=dict(self.bursts) if self.bursts.changed else before.bursts,
            holds=dict(self.holds) if self.holds.changed else before.holds,
            health=health if self.health.changed else before.health,
            outputs=dict(self.outputs) if self.outputs.changed else before.outputs,
            unreadable=before.unreadable,
        )

    def note(
        self, burst: BurstId, name: str, context: dict[str, Any], at: float = 0.0
    ) -> Burst:
        """Write an event of a burst; `at` where it is known to be from earlier."""
        event = Event(at or self.now, name, context)
        before = self.bursts[burst]
        after, applied = lifecycle.step(before, event)
        if after is not before:
            self.bursts[burst] = after
        self.events.append((burst, applied))
        return after

    def fail(self, burst: BurstId, kind: str, note: str) -> Burst:
        """End a burst by an exception."""
        context = {"type": kind, "severity": 0, "note": note}
        return self.note(burst, "exception", context)

    def quarantine(self, burst: BurstId, why: str) -> None:
        """Set a burst apart."""
        after = lifecycle.quarantine(self.bursts[burst], why, self.now)
        self.bursts[burst] = after
        self.events.append((burst, after.events[-1]))

    def begin(self, lease: Lease, jobs: dict[JobId, float]) -> None:
        """Put a new burst on the books, and ask its provider to make it.

        One that runs a job in our stead waits until nothing else can.
        """
        self.put(lease, jobs)
        if lease.isolated is None or lease.isolated.job is None:
            self.start(lease.id)

    def put(self, lease: Lease, jobs: Mapping[JobId, float] | None = None) -> None:
        """Put a new burst on the books, and ask for nothing."""
        burst = lifecycle.begin(lease, jobs or {}, self.now)
        self.bursts[lease.id] = burst
        self.events.append((lease.id, lifecycle.submission(jobs or {}, self.now)))

    def start(self, burst: BurstId) -> None:
        """Record that the provider is about to be asked, and ask."""
        self.note(burst, "provision-start", {})
        self.actions.append(Provision(burst))

    def set_health(self, provider: str, health: Health) -> None:
        """Change what is held against a provider, if that is a change."""
        if health != self.health_of(provider):
            self.health[provider] = health

    def health_of(self, provider: str) -> Health:
        """Return what is held against a provider."""
        return self.health.get(provider, Health())

    def move_hold(self, job: JobId, state: HoldState) -> None:
        """Take the hold of a job a step further."""
        self.holds[job] = self.holds[job].then(state, self.now)

    def bursts_of(self) -> dict[JobId, list[Burst]]:
        """Return the bursts that each job counts on: those not being taken down."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.bursts.values():
            if burst.state in COUNTED_ON and not burst.quarantined:
                for job in burst.jobs:
                    found.setdefault(job, []).append(burst)
        return found


COUNTED_ON = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
"""States of a burst that jobs count on: it is not being taken down."""
