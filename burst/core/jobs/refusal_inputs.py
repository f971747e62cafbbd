# SPDX-License-Identifier: MIT
"""What refusals rest on, beside the job itself: compared from one tick to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.jobs.burst_worth import forecast_due
from burst.core.jobs.rules import RuleSet
from burst.core.money.budget import next_begin
from burst.core.money.ledger import Payer
from burst.core.money.life import booked
from burst.core.money.money import Money
from burst.core.plan.capacity import own_ranks
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.leasable import LeasableRanks, leasable_ranks
from burst.core.plan.limits import FurtherUse
from burst.core.plan.online_times import ProviderTimes
from burst.core.plan.plan_demands import unread_use
from burst.core.plan.slots import RankSlot
from burst.core.provider_calls import is_overdue
from burst.core.provider_health import Health, expiry_times
from burst.core.records import Transaction
from burst.model.banks import NOT_VERIFIED, Banks
from burst.model.burst import BurstId, State
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, QueueView
from burst.model.shape import Shape

_STANDS_S = 60.0
"""How long refusals stand if leases end with the lead: a burst costs less as that end
comes nearer, so it may be paid for later."""


class RefusalInputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that a refusal rests on, beside the job and the time."""

    settings: Settings
    identity: LeadIdentity
    slots: Sequence[RankSlot]
    health: Mapping[str, Health] = {}
    offers: Mapping[str, object] = {}
    ranks: LeasableRanks = LeasableRanks()
    """The ranks that bursts may lease, now or later."""
    bursts: Mapping[BurstId, tuple[State, bool, frozenset[JobId]]] = {}
    """By live burst: its state, whether it grows, is quarantined or is overdue, and the
    jobs that will still take nodes of it."""
    free: Mapping[int, Shape] = {}
    """What is free on each rank that can run jobs, own ranks and ranks of bursts."""
    own: frozenset[int] = frozenset()
    """The ranks that can run jobs and that no burst leases, as `own_ranks` has them."""
    unreadable: frozenset[str] = frozenset()
    """Keys of records that cannot be read: nothing is made that one of them may be."""
    unread_use: Mapping[BurstId, FurtherUse] = {}
    """What the bursts of such records use of the limits."""
    banks: Banks = NOT_VERIFIED
    queues: Mapping[str, QueueView] = {}
    """Which queues take jobs and start them."""
    open_rules: int = 1
    """The rules that were within their hours, as bits."""
    forecasts: Mapping[JobId, StartEstimate] | None = None
    forecast_late: bool = False
    """Whether jobs without a forecast are decided on as if `worth` were 0."""
    times: Mapping[str, ProviderTimes] = {}
    """How long bursts took to come online and to be taken down, by provider."""
    reserved: Mapping[BurstId, tuple[Money, frozenset[Payer], tuple[float, ...]]] = {}
    """The money reserved for each burst, for whom, and what is booked for jobs on it;
    empty without budgets."""
    until: float = math.inf
    """When the first of the times is over on which some of this rests, in seconds since
    the epoch."""


def refusal_inputs(tx: Transaction, rules: RuleSet) -> RefusalInputs:
    """Return what refusals of this tick rest on."""
    world, lead, settings = tx.world, tx.lead, tx.settings
    return RefusalInputs(
        settings=settings,
        identity=world.identity,
        slots=world.slots,
        health=dict(tx.health),
        offers={name: view.offers for name, view in world.providers.items()},
        ranks=leasable_ranks(world.slots, tx, lead),
        bursts={
            burst.id: (
                burst.state,
                bool(burst.coming or burst.quarantined or is_overdue(burst)),
                burst.unstarted,
            )
            for burst in tx.live
        },
        free={rank: lead.free[rank] for rank in lead.usable if rank in lead.free},
        own=own_ranks(tx, lead, world.identity),
        unreadable=frozenset(tx.unreadable),
        unread_use=unread_use(tx, world),
        banks=world.banks,
        queues=lead.queues,
        open_rules=rules.open_at(tx.now),
        forecasts=world.forecasts,
        forecast_late=tx.now >= forecast_due(world, tx.now),
        times=dict(tx.times),
        reserved={
            name: (entry.reserved, entry.payers, booked(entry))
            for name, entry in tx.entries.items()
        }
        if settings.budget
        else {},
        until=min(
            _next_change(tx.health, tx.now),
            next_begin(settings.budget, tx.now),
            _next_minute(world.identity.ends, tx.now),
        ),
    )


def _next_minute(lead_ends: float, now: float) -> float:
    """Return when refusals are judged anew as leases got shorter; math.inf for never.

    It is the same for all ticks until then, as inputs are compared.
    """
    left = lead_ends - now
    return lead_ends - left // _STANDS_S * _STANDS_S if lead_ends else math.inf


def _next_change(health: Mapping[str, Health], now: float) -> float:
    times = (time for held in health.values() for time in expiry_times(held))
    return min((time for time in times if time > now), default=math.inf)
