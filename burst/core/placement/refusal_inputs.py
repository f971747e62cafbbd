# SPDX-License-Identifier: MIT
"""What refusals rest on, beside the job itself: compared from one tick to the next."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.ensemble.over import members_with_jobs_here
from burst.core.placement.capacity import own_ranks
from burst.core.placement.leasable import leasable_ranks
from burst.core.placement.slots import RankSlot
from burst.core.placement.trials import coming_bursts, running_trials
from burst.core.provider_health import Health, expiry_times
from burst.core.records import Transaction
from burst.core.world import World
from burst.core.worth.budget import next_begin
from burst.core.worth.estimate import StartEstimate
from burst.core.worth.money import Money
from burst.core.worth.rules import RuleSet
from burst.core.worth.stage_times import ProviderTimes
from burst.model.banks import NOT_VERIFIED, Banks
from burst.model.burst import Burst, BurstId, Membership, State
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView
from burst.model.shape import Shape


class CapacityPhase(enum.Enum):
    """What a live burst has to give."""

    COMING = "coming"
    UP = "up"
    GOING = "going"


class RefusalInputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that a refusal rests on, beside the job and the time."""

    health: Mapping[str, Health]
    settings: Settings
    identity: LeadIdentity
    slots: Sequence[RankSlot]
    offers: Mapping[str, object]
    free_ranks: frozenset[int]
    """Those that a new burst may lease."""
    free_in_time: frozenset[int]
    """Those, and the ranks that come free."""
    bursts: Mapping[BurstId, tuple[CapacityPhase, frozenset[JobId]]]
    """Live ones, and the jobs that will still take nodes of each."""
    free: Mapping[int, Shape]
    """What is free of the ranks that can run jobs: our own, and those of bursts."""
    own: frozenset[int] = frozenset()
    """Those of them that no burst has."""
    trials: frozenset[str] = frozenset()
    """Providers and offers of which one burst is to show whether they work, and that is
    not online yet."""
    unreadable: frozenset[str]
    """Keys of records that cannot be read: of what they may be, nothing is made."""
    until: float
    """Then a time runs out on which some of it rests."""
    banks: Banks = NOT_VERIFIED
    open_rules: int = 1
    """The rules whose hours it was, as bits."""
    forecasts: Mapping[JobId, StartEstimate] | None = None
    times: Mapping[str, ProviderTimes] = {}
    """How long bursts took to come and to go."""
    members: frozenset[Membership] = frozenset()
    """Those of ensembles that take jobs here."""
    has_room: bool = False
    """Whether some live burst may have room for a further job."""
    reserved: Mapping[BurstId, Money] = {}
    """What of the budgets is reserved for each burst; empty where there are none."""

    def no_larger(self, before: RefusalInputs) -> bool:
        """Tell whether what is impossible without a constraint still is.

        It rests on what there is at all, and on what is up; not on what is taken.
        """
        return (
            self.settings is before.settings
            and self.identity is before.identity
            and self.slots is before.slots
            and self.offers == before.offers
            and self.banks is before.banks
            and self.open_rules == before.open_rules
            and self.members == before.members
            and all(self._gives_no_more(*burst) for burst in before.bursts.items())
            and all(
                self._is_going(burst) for burst in self.bursts.keys() - before.bursts
            )
            and all(
                rank in before.free and before.free[rank].holds(shape)
                for rank, shape in self.free.items()
            )
        )

    def no_better(self, before: RefusalInputs) -> bool:
        """Tell whether nothing can be had now that could not be had before."""
        return (
            self.no_larger(before)
            and self.health == before.health
            and self.trials >= before.trials
            and self.free_ranks <= before.free_ranks
            and self.free_in_time <= before.free_in_time
            and self.unreadable == before.unreadable
            # One that is gone gives back its slot and its share of the limits.
            and self.bursts.keys() >= before.bursts.keys()
            # A burst that has fewer nodes than before gives back to the budgets.
            and all(
                self.reserved.get(burst, 0) >= amount
                for burst, amount in before.reserved.items()
            )
        )

    def _gives_no_more(
        self, burst: BurstId, was: tuple[CapacityPhase, frozenset[JobId]]
    ) -> bool:
        now = self.bursts.get(burst)
        if now is None:
            return was[0] is CapacityPhase.GOING
        return now == was or now[0] is CapacityPhase.GOING

    def _is_going(self, burst: BurstId) -> bool:
        """Tell whether a burst that is new here has no nodes for any job.

        Those that are planned for jobs are known here. One that a person requested is
        not, and as nobody bears its nodes, limits of users do not count for them.
        """
        return self.bursts[burst][0] is CapacityPhase.GOING


def refusal_inputs(
    tx: Transaction, world: World, settings: Settings, rules: RuleSet
) -> RefusalInputs:
    """Return what refusals of this tick rest on."""
    lead = world.lead
    assert lead is not None
    live = tx.live
    ranks = leasable_ranks(world.slots, tx, lead)
    return RefusalInputs(
        health=dict(tx.health),
        settings=settings,
        identity=world.identity,
        slots=world.slots,
        offers={name: view.offers for name, view in world.providers.items()},
        free_ranks=ranks.free,
        free_in_time=ranks.free.union(ranks.ends),
        bursts={
            burst.id: (_stage(burst), burst.jobs - burst.started) for burst in live
        },
        free={rank: lead.free[rank] for rank in lead.usable if rank in lead.free},
        own=frozenset(own_ranks(tx, lead, world.identity)),
        trials=running_trials(tx.health, coming_bursts(live), tx.now),
        unreadable=frozenset(tx.unreadable),
        until=min(_next_change(tx.health, tx.now), next_begin(settings.budget, tx.now)),
        banks=world.banks,
        open_rules=rules.open_at(tx.now),
        forecasts=world.forecasts,
        times=dict(tx.times),
        members=members_with_jobs_here(tx),
        has_room=any(_may_have_room(burst, lead) for burst in live),
        reserved={name: entry.reserved for name, entry in tx.entries.items()}
        if settings.budget
        else {},
    )


def _may_have_room(burst: Burst, lead: LeadView) -> bool:
    stage = _stage(burst)
    if stage is CapacityPhase.UP:
        usable = (lead.free.get(r) for r in burst.lease.ranks if r in lead.usable)
        return any(shape is not None and shape.cores for shape in usable)
    return stage is CapacityPhase.COMING


def _stage(burst: Burst) -> CapacityPhase:
    if burst.state is State.ONLINE:
        # What it grows by is for any job that it would have been too small for.
        return CapacityPhase.COMING if burst.coming else CapacityPhase.UP
    going = burst.quarantined or burst.state in (State.DRAIN, State.REAP)
    return CapacityPhase.GOING if going else CapacityPhase.COMING


def _next_change(health: Mapping[str, Health], now: float) -> float:
    times = (time for held in health.values() for time in expiry_times(held))
    return min((time for time in times if time > now), default=math.inf)
