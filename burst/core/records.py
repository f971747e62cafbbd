# SPDX-License-Identifier: MIT
"""The records, and the transaction in which a tick changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import msgspec

from burst.config import Settings
from burst.core import cooldowns, lifecycle
from burst.core.actions import Action, ProvisionBurst
from burst.core.money.ledger import Entry, SettledBurst
from burst.core.money.periods import Period
from burst.core.plan.online_times import ProviderTimes
from burst.core.provider_health import Health
from burst.core.world import World
from burst.errors import BurstError
from burst.model.burst import (
    CAPACITY,
    ISOLATED_STEM,
    RECLAIMED,
    SPEC,
    Burst,
    BurstId,
    Lease,
    State,
)
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import LeadView
from burst.model.repeat import Repeat

ASSIGNABLE = (State.NEW, *lifecycle.UNDER_WAY)
"""States of a burst to which jobs may be assigned: it is not being taken down."""
UNNEEDED = "no job needs it any more"
"""The reason to take down a burst that was made for jobs and has none left."""


def is_usable(burst: Burst) -> bool:
    """Tell whether a burst comes up or is up, so that it may have jobs."""
    return burst.state in ASSIGNABLE and not burst.quarantined


class _WithBursts:
    """What stored records and changes of records tell about bursts."""

    __slots__ = ()
    bursts: Mapping[BurstId, Burst]

    @property
    def live(self) -> list[Burst]:
        """The live bursts: something of them may exist."""
        return [burst for burst in self.bursts.values() if burst.live]

    def find(self, burst_id: str) -> Burst:
        """Return the burst with that id. Raises BurstError if there is none."""
        burst = self.bursts.get(BurstId(burst_id))
        if burst is None:
            names = ", ".join(sorted(b.id for b in self.live)) or "none"
            raise BurstError(f"there is no burst {burst_id}", f"live bursts: {names}")
        return burst


class Records(msgspec.Struct, _WithBursts, frozen=True, kw_only=True):
    """All that is kept in the store, as values."""

    bursts: Mapping[BurstId, Burst] = {}
    """Live bursts, and the last bursts that ended."""
    holds: Mapping[JobId, Hold] = {}
    """What was done to the urgency of each job."""
    health: Mapping[str, Health] = {}
    """What failed at each provider; a provider without failures has no entry."""
    outputs: Mapping[BurstId, str] = {}
    """The output of isolated bursts that have ended."""
    entries: Mapping[BurstId, Entry] = {}
    """The money reserved for each burst that may still cost something."""
    periods: Mapping[str, Period] = {}
    """The money settled, by day or month."""
    settled: Mapping[BurstId, SettledBurst] = {}
    """The bursts that were settled last; they are kept longer here than in `bursts`."""
    times: Mapping[str, ProviderTimes] = {}
    """How long bursts took to come online and to go, by provider: see `OnlineTimes`."""
    repeats: Mapping[JobId, Repeat] = {}
    """What became of each job that lost a node and was to run again."""
    unreadable: Mapping[str, str] = {}
    """Keys of records that cannot be read, and why. Never deleted, never acted on."""


class RecordChanges(_WithBursts):
    """A copy of the records that is changed, with the events and the actions.

    No change holds before the store has it.
    """

    def __init__(self, records: Records, now: float) -> None:
        self.now = now
        self._before = records
        self.bursts: dict[BurstId, Burst] = dict(records.bursts)
        self.holds = dict(records.holds)
        self.health = dict(records.health)
        self.outputs = dict(records.outputs)
        self.entries = dict(records.entries)
        self.periods = dict(records.periods)
        self.settled = dict(records.settled)
        self.times = dict(records.times)
        self.repeats = dict(records.repeats)
        self.unreadable = records.unreadable
        self.events: list[tuple[BurstId, Event]] = []
        self.actions: list[Action] = []

    def result(self) -> Records:
        """Return the new records; a mapping that did not change is the same object."""
        new = {
            name: dict(mine)
            for name in Records.__struct_fields__
            if (mine := getattr(self, name)) != getattr(self._before, name)
        }
        return msgspec.structs.replace(self._before, **new)

    def record(
        self, burst: BurstId, name: str, context: dict[str, Any], at: float = 0.0
    ) -> Burst:
        """Record an event of a burst; `at` is its time if it happened earlier."""
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

    def quarantine(self, burst: BurstId, why: str, cause: str = "") -> None:
        """Quarantine a burst: nothing is done to it until a person decides.

        `cause` is OUT_OF_REACH if the quarantine ends by itself together with it.
        """
        context = {"note": why, "cause": cause} if cause else {"note": why}
        self.record(burst, "quarantine", context)

    def plan_burst(self, lease: Lease, jobs: Mapping[JobId, float]) -> None:
        """Record a new burst, and have its provider make it.

        An isolated burst that runs a job of this lead is made later, once the hold
        keeps Flux from starting the job.
        """
        self.add_burst(lease, jobs)
        if lease.isolated_job is None:
            self.start_provision(lease.id)

    def add_burst(self, lease: Lease, jobs: Mapping[JobId, float]) -> None:
        """Record a new burst; its provider is not called yet."""
        self.bursts[lease.id] = Burst(lease=lease, since=self.now)
        self.record(lease.id, "submit", lifecycle.named(jobs))

    def start_provision(self, burst: BurstId) -> None:
        """Record that the provider is about to be called, and call it."""
        self.record(burst, "provision-start", {})
        self.actions.append(ProvisionBurst(burst))

    def health_of(self, provider: str) -> Health:
        """Return the health of a provider: what failed there."""
        return self.health.get(provider, Health())

    def set_health(self, provider: str, health: Health) -> None:
        """Record the health of a provider if it has changed."""
        if health == self.health_of(provider):
            return
        if health.is_default:
            del self.health[provider]
        else:
            self.health[provider] = health

    def set_hold_state(self, job: JobId, state: HoldState) -> None:
        """Record that the hold of a job has reached a state."""
        self.holds[job] = self.holds[job].then(state, self.now)

    def new_jobs(self, burst: Burst) -> Set[JobId]:
        """Return the jobs that were assigned to a burst in this transaction."""
        before = self._before.bursts.get(burst.id)
        return burst.jobs - before.jobs if before else burst.jobs

    def bursts_by_job(self) -> dict[JobId, list[Burst]]:
        """Return the bursts to which each job is assigned, without those that end."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.bursts.values():
            if is_usable(burst):
                for job in burst.jobs:
                    found.setdefault(job, []).append(burst)
        return found


class Transaction(RecordChanges):
    """Changes of the records by what was read and by the settings."""

    def __init__(
        self, records: Records, world: World, settings: Settings, now: float
    ) -> None:
        super().__init__(records, now)
        self.world, self.settings = world, settings
        self.awaited: frozenset[BurstId] = frozenset()
        """Idle bursts that the first waiting job will have, with nodes busy now."""
        self.rules: dict[JobId, str] = {}
        """The name of the rule of `[[policy]]` by which each job was placed."""

    @property
    def lead(self) -> LeadView:
        """The lead as it was read. Raises Unreadable if it was not."""
        return self.world.read_lead()

    def fail_as_seen(self, burst: Burst, why: str, kind: str) -> None:
        """End a burst that its provider shows as failed.

        `kind` is CAPACITY, RECLAIMED, SPEC, REFUSED or `failed`. If it was not online
        yet, its offer is set aside for a while: for CAPACITY and RECLAIMED only for
        bursts of that size or larger.
        """
        self.fail(burst.id, kind, why)
        if burst.state not in lifecycle.COMING_UP:
            return
        if kind == RECLAIMED:
            self.pause_reclaimed(burst)
        elif kind == SPEC:
            self.refuse_spec(burst, why, by_rule=True)
        else:
            nodes = burst.lease.nodes if kind == CAPACITY else 0
            self.cool_down(burst, why, nodes)

    def fail_late(self, burst: Burst, why: str) -> None:
        """End a burst that is not online by its deadline."""
        if burst.reclaimed:
            self.fail(burst.id, RECLAIMED, f"{burst.reclaimed}; {why}")
            self.pause_reclaimed(burst)
        else:
            self.fail(burst.id, "timeout", why)
            self.cool_down(burst, why)

    def cool_down(
        self,
        burst: Burst,
        why: str,
        nodes: int = 0,
        others: Iterable[str] = (),
    ) -> None:
        """Set aside the offer of a burst that failed, and the offers `others`.

        `nodes` is the size of the burst if it lacked capacity: smaller bursts are still
        made; 0 sets the offers aside for bursts of any size. `why` is the reason that
        is reported for the burst's own offer.
        """
        lease, limits = burst.lease, self.settings.limits
        health = self.health_of(lease.provider)
        for offer in (lease.offer, *others):
            health = cooldowns.cool_down(health, offer, limits, self.now, nodes)
        self.set_health(lease.provider, cooldowns.explain(health, lease.offer, why))

    def refuse_spec(self, burst: Burst, why: str, *, by_rule: bool) -> None:
        """Set aside the kind of a burst that its provider refused, for a while.

        With `by_rule` all bursts of its offer are set aside.
        """
        known, lease = self.health_of(burst.lease.provider), burst.lease
        refuse = cooldowns.refuse_offer if by_rule else cooldowns.refuse_spec
        held = refuse(known, lease, why, self.settings.limits, self.now)
        self.set_health(lease.provider, held)

    def pause_reclaimed(self, burst: Burst) -> None:
        """Set aside the offer of a burst whose nodes were taken back as it came up."""
        health, limits = self.health_of(burst.lease.provider), self.settings.limits
        health = cooldowns.pause_reclaimed(health, burst.lease, limits, self.now)
        self.set_health(burst.lease.provider, health)

    def forgive(self, burst: Burst) -> None:
        """Forget the failures of the offer of a burst that came online."""
        health = self.health_of(burst.lease.provider)
        self.set_health(burst.lease.provider, cooldowns.forgive(health, burst.lease))

    def regain_capacity(self, burst: Burst) -> None:
        """Try the offer of a burst again that was online and has gone."""
        health = self.health_of(burst.lease.provider)
        health = cooldowns.regain_capacity(health, burst.lease, self.now)
        self.set_health(burst.lease.provider, health)


RecordsView = Records | RecordChanges
"""Records for reading: stored ones, or those that a tick is changing."""


def jobs_on_record(records: Records) -> frozenset[JobId]:
    """Return the jobs on record: held jobs, and the jobs of bursts.

    The jobs of a burst are those it was made for and those that were seen running on
    it.
    """
    jobs = {job for burst in records.bursts.values() for job in burst.jobs}
    run = {job for entry in records.entries.values() for job, _ in entry.use.jobs}
    return frozenset(jobs | run | records.holds.keys())


def unread_bursts(records: RecordsView) -> list[BurstId]:
    """Return the bursts whose records cannot be read."""
    return [
        BurstId(key.removeprefix("burst/"))
        for key in records.unreadable
        if key.startswith("burst/")
    ]


def unread_leases(records: RecordsView) -> list[str]:
    """Return the keys of unreadable records that may lease a rank slot."""
    isolated = f"burst/{ISOLATED_STEM}-"
    return [
        key
        for key in records.unreadable
        if key.startswith("burst/") and not key.startswith(isolated)
    ]


def unreadable_isolated_record(records: RecordsView) -> str:
    """Return the key of an isolated burst's record that cannot be read; empty if none.

    It may be the record of any job's isolated burst.
    """
    isolated = f"burst/{ISOLATED_STEM}-"
    return next((key for key in records.unreadable if key.startswith(isolated)), "")
