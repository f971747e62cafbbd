# SPDX-License-Identifier: MIT
"""What is on record, and the transaction in which a tick changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from burst.core import lifecycle
from burst.core.actions import Action, ProvisionBurst
from burst.core.provider_health import Health
from burst.model.burst import ISOLATED_STEM, Burst, BurstId, Lease, State
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId

_K = TypeVar("_K")
_V = TypeVar("_V")


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept in the store, as values."""

    bursts: Mapping[BurstId, Burst] = {}
    holds: Mapping[JobId, Hold] = {}
    health: Mapping[str, Health] = {}
    """By provider; only those that have something against them."""
    outputs: Mapping[BurstId, str] = {}
    """What isolated bursts wrote that have ended."""
    unreadable: Mapping[str, str] = {}
    """Keys of records that cannot be read, and why. Never deleted, never acted on."""

    @property
    def live(self) -> list[Burst]:
        """Bursts of which something may exist."""
        return [burst for burst in self.bursts.values() if burst.live]

    @property
    def unread_leases(self) -> list[str]:
        """Keys of unreadable records that may lease a rank slot."""
        isolated = f"burst/{ISOLATED_STEM}-"
        return [
            key
            for key in self.unreadable
            if key.startswith("burst/") and not key.startswith(isolated)
        ]


class ChangedDict(dict[_K, _V]):
    """A copy of one of the mappings of records that knows whether it was written in."""

    changed = False

    def __setitem__(self, key: _K, value: _V) -> None:
        self.changed = True
        super().__setitem__(key, value)

    def __delitem__(self, key: _K) -> None:
        self.changed = True
        super().__delitem__(key)


class Transaction:
    """A copy of the records to be changed, the events that changed it, the actions.

    Nothing of it is true before the store has it.
    """

    def __init__(self, records: Records, now: float) -> None:
        self.now = now
        self._before = records
        self.bursts = ChangedDict(records.bursts)
        self.holds = ChangedDict(records.holds)
        self.health = ChangedDict(records.health)
        self.outputs = ChangedDict(records.outputs)
        self.events: list[tuple[BurstId, Event]] = []
        self.actions: list[Action] = []

    def records(self) -> Records:
        """Return the new records; a mapping that did not change is the same object."""
        before = self._before
        health = {name: h for name, h in self.health.items() if not h.is_default}
        return Records(
            bursts=dict(self.bursts) if self.bursts.changed else before.bursts,
            holds=dict(self.holds) if self.holds.changed else before.holds,
            health=health if self.health.changed else before.health,
            outputs=dict(self.outputs) if self.outputs.changed else before.outputs,
            unreadable=before.unreadable,
        )

    def record(
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
        return self.record(burst, "exception", context)

    def quarantine(self, burst: BurstId, why: str) -> None:
        """Set a burst apart."""
        after = lifecycle.quarantine(self.bursts[burst], why, self.now)
        self.bursts[burst] = after
        self.events.append((burst, after.events[-1]))

    def plan_burst(self, lease: Lease, jobs: dict[JobId, float]) -> None:
        """Put a new burst on record, and ask its provider to make it.

        One that runs a job in our stead waits until nothing else can.
        """
        self.add_burst(lease, jobs)
        if lease.isolated is None or lease.isolated.job is None:
            self.start_provision(lease.id)

    def add_burst(
        self, lease: Lease, jobs: Mapping[JobId, float] | None = None
    ) -> None:
        """Put a new burst on record, and ask for nothing."""
        burst = lifecycle.begin(lease, jobs or {}, self.now)
        self.bursts[lease.id] = burst
        self.events.append((lease.id, lifecycle.submission(jobs or {}, self.now)))

    def start_provision(self, burst: BurstId) -> None:
        """Record that the provider is about to be asked, and ask."""
        self.record(burst, "provision-start", {})
        self.actions.append(ProvisionBurst(burst))

    def set_health(self, provider: str, health: Health) -> None:
        """Change what is held against a provider, if that is a change."""
        if health != self.health_of(provider):
            self.health[provider] = health

    def health_of(self, provider: str) -> Health:
        """Return what is held against a provider."""
        return self.health.get(provider, Health())

    def set_hold_state(self, job: JobId, state: HoldState) -> None:
        """Take the hold of a job a step further."""
        self.holds[job] = self.holds[job].then(state, self.now)

    def bursts_by_job(self) -> dict[JobId, list[Burst]]:
        """Return the bursts that each job counts on: those not being taken down."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.bursts.values():
            if burst.state in ASSIGNABLE and not burst.quarantined:
                for job in burst.jobs:
                    found.setdefault(job, []).append(burst)
        return found


ASSIGNABLE = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
"""States of a burst that jobs count on: it is not being taken down."""
