# SPDX-License-Identifier: MIT
"""The planner as tests call it: demands in, a plan out."""

from __future__ import annotations

from burst.config import DeadlineSettings, PlanSettings
from burst.core.isolated.placement import IsolatedPlacement
from burst.core.placement.leased_slots import LiveBursts
from burst.core.placement.limits import Usage
from burst.core.placement.offers import offer_catalog, provider_offers
from burst.core.placement.plan import Demand
from burst.core.placement.planner import Planner
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.slots import find_slots
from burst.core.placement.trials import coming_bursts, running_trials
from burst.core.select.constraints import Constraints
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences
from tests.builders import T0, identity, offer, settings


def demand(number, request, user=100, provider="", coming=0):
    job = None if number is None else JobId(number)
    return Demand(
        job=job,
        userid=user,
        request=request,
        preferences=BurstPreferences(provider),
        coming=coming,
    )


def plan(*demands, lead=None, taken=(), offers=None, capacities=(), limits=None, **kw):
    lead = lead or identity()
    found = find_slots(lead)
    offers = {"local": [offer()]} if offers is None else offers
    health = kw.pop("health", {})
    coming = coming_bursts(kw.pop("live", ()))
    market = offer_catalog(
        provider_offers(offers, {}, DeadlineSettings(), T0),
        health,
        T0,
        running_trials(health, coming, T0),
    )
    free = [slot for slot in found if slot.name not in taken]
    purchases = kw.pop("purchases", None)
    usage = Usage(settings(limits=limits or {}).limits, [], {}, purchases)
    in_use = kw.pop("in_use", ())
    for share in (share for slot in in_use for share in slot.shares.values()):
        usage.add("", share.nodes, share.bursts, share.userids)
    planner = Planner(
        SlotIndex(found, free, Constraints(lead), market.providers),
        market,
        IsolatedPlacement(usage, (), "", identity()),
        LiveBursts(
            now=T0,
            capacities=capacities,
            slots=kw.pop("busy", {}),
            whole_nodes=kw.pop("whole_nodes", False),
        ),
        PlanSettings(**kw),
    )
    return planner.make(demands, lead, T0)


def leases(made):
    return [
        (p.lease.slot, p.lease.provider, len(p.lease.ranks), list(p.jobs))
        for p in made.proposals
    ]


def reasons(made, job):
    verdict = made.decisions[job]
    return verdict.reason, [(r.offer, r.reason) for r in verdict.refusals]
