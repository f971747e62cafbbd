# SPDX-License-Identifier: MIT
"""What is on record, and the transaction in which a tick changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from burst.config import LimitSettings
from burst.core import lifecycle, provider_health
from burst.core.actions import Action, ProvisionBurst
from burst.core.provider_health import Health
from burst.model.burst import CAPACITY, ISOLATED_STEM, Burst, BurstId, Lease, State
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId

_K = TypeVar("_K")
_V = TypeVar("_V")

ASSIGNABLE = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
"""States of a burst to which jobs are assigned: it is not being taken down."""
UNNEEDED = "no job needs it any more"
"""Why a burst is taken down that was made for jobs and has none."""


class RecordsView(Protocol):
    """Records to be read: those of a tick before, or those that a tick is changing."""

    @property
    def bursts(self) -> Mapping[BurstId, Burst]:
        """Live bursts, and the last that ended."""

    @property
    def holds(self) -> Mapping[JobId, Hold]:
        """What was done to the urgency of each job."""

    @property
    def health(self) -> Mapping[str, Health]:
        """By provider; only those that have something against them."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Keys of records that cannot be read, and why."""

    @property
    def live(self) -> list[Burst]:
        """Bursts of which something may exist."""

    @property
    def unread_leases(self) -> list[str]:
        """Keys of unreadable records that may lease a rank slot."""


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept in the store, as values."""

    bursts: Mapping[BurstId, Burst] = {}
    holds: Mapping[JobId, Hold] = {}
    health: Mapping[str, Health] = {}
    """By provider; only those that have something against them."""
    outputs: Mapping[BurstId, str] = {}
    """Output of isolated bursts that have ended."""
    unreadable: Mapping[str, str] = {}
    """Keys of records that cannot be read, and why. Never deleted, never acted on."""

    @property
    def live(self) -> list[Burst]:
        """Bursts of which something may exist."""
        return [burst for burst in self.bursts.values() if burst.live]

    @property
    def unread_leases(self) -> list[str]:
        """Keys of unreadable records that may lease a rank slot."""
        return _unread_leases(self.unreadable)


class ChangedDict(dict[_K, _V]):
    """A copy of one of the mappings of records that knows whether it was changed."""

    changed = False

    def __setitem__(self, key: _K, value: _V) -> None:
        self.changed = True
        super().__setitem__(key, value)

    def __delitem__(self, key: _K) -> None:
        self.changed = True
        super().__delitem__(key)


class Transaction:
    """A copy of the records that a tick changes, the events of that, the actions.

    Nothing of it is true before the store has it.
    """

    def __init__(self, records: Records, now: float) -> None:
        self.now = now
        self._before = records
        self.bursts = ChangedDict(records.bursts)
        self.holds = ChangedDict(records.holds)
        self.health = ChangedDict(records.health)
        self.outputs = ChangedDict(records.outputs)
        self.unreadable = records.unreadable
        self.events: list[tuple[BurstId, Event]] = []
        self.actions: list[Action] = []

    def result(self) -> Records:
        """Return the new records; a mapping that did not change is the same object."""
        before = self._before
        return Records(
            bursts=dict(self.bursts) if self.bursts.changed else before.bursts,
            holds=dict(self.holds) if self.holds.changed else before.holds,
            health=dict(self.health) if self.health.changed else before.health,
            outputs=dict(self.outputs) if self.outputs.changed else before.outputs,
            unreadable=before.unreadable,
        )

    @property
    def live(self) -> list[Burst]:
        """Bursts of which something may exist."""
        return [burst for burst in self.bursts.values() if burst.live]

    @property
    def unread_leases(self) -> list[str]:
        """Keys of unreadable records that may lease a rank slot."""
        return _unread_leases(self.unreadable)

    def record(
        self, burst: BurstId, name: str, context: dict[str, Any], at: float = 0.0
    ) -> Burst:
        """Record an event of a burst; `at` where it is known to be from earlier."""
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

    def fail_as_seen(
        self, burst: Burst, why: str, limits: LimitSettings, *, lacking: bool
    ) -> None:
        """End a burst that its provider shows as failed, `lacking` capacity or not.

        If it was not online yet, no burst of its offer is made for a while.
        """
        self.fail(burst.id, CAPACITY if lacking else "failed", why)
        if burst.state in (State.PROVISION, State.JOIN):
            self.cool_down(burst, limits, burst.lease.nodes if lacking else 0)

    def quarantine(self, burst: BurstId, why: str, cause: str = "") -> None:
        """Quarantine a burst; `cause` as for `lifecycle.quarantine`."""
        after = lifecycle.quarantine(self.bursts[burst], why, self.now, cause)
        self.bursts[burst] = after
        self.events.append((burst, after.events[-1]))

    def plan_burst(self, lease: Lease, jobs: Mapping[JobId, float]) -> None:
        """Record a new burst, and have its provider make it.

        One that runs a job of this lead is made later, once Flux cannot start the job.
        """
        self.add_burst(lease, jobs)
        if lease.isolated_job is None:
            self.start_provision(lease.id)

    def add_burst(self, lease: Lease, jobs: Mapping[JobId, float]) -> None:
        """Record a new burst; its provider is not called yet."""
        self.bursts[lease.id] = lifecycle.begin(lease, jobs, self.now)
        self.events.append((lease.id, lifecycle.submission(jobs, self.now)))

    def start_provision(self, burst: BurstId) -> None:
        """Record that the provider is about to be called, and call it."""
        self.record(burst, "provision-start", {})
        self.actions.append(ProvisionBurst(burst))

    def health_of(self, provider: str) -> Health:
        """Return what is held against a provider."""
        return self.health.get(provider, Health())

    def set_health(self, provider: str, health: Health) -> None:
        """Change what is held against a provider, if that is a change."""
        if health == self.health_of(provider):
            return
        if health.is_default:
            del self.health[provider]
        else:
            self.health[provider] = health

    def cool_down(self, burst: Burst, limits: LimitSettings, nodes: int = 0) -> None:
        """Make no burst of the offer of a burst that failed for a while.

        `nodes` is its size where it lacked capacity: smaller bursts are still made.
        """
        provider, offer = burst.lease.provider, burst.lease.offer
        known = self.health_of(provider)
        health = provider_health.cool_down(known, offer, limits, self.now, nodes)
        self.set_health(provider, health)

    def set_hold_state(self, job: JobId, state: HoldState) -> None:
        """Take the hold of a job a step further."""
        self.holds[job] = self.holds[job].then(state, self.now)

    def bursts_by_job(self) -> dict[JobId, list[Burst]]:
        """Return the bursts to which each job is assigned, without those that end."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.bursts.values():
            if burst.state in ASSIGNABLE and not burst.quarantined:
                for job in burst.jobs:
                    found.setdefault(job, []).append(burst)
        return found


def _unread_leases(unreadable: Iterable[str]) -> list[str]:
    isolated = f"burst/{ISOLATED_STEM}-"
    return [
        key
        for key in unreadable
        if key.startswith("burst/") and not key.startswith(isolated)
    ]
