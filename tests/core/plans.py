# SPDX-License-Identifier: MIT
"""The planner as tests call it: demands in, a plan out."""

import math

from burst.config import PlanSettings, Settings
from burst.core.plan.catalog import Failures, coming_bursts, offer_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import rest_of
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import Usage
from burst.core.plan.offers import provider_offers
from burst.core.plan.planner import make_plan
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slots import find_slots
from burst.core.plan.sources import LiveBurst, Source
from burst.model.burst import BurstId
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences
from tests.builders import T0, identity, offer, settings


def demand(number, request, user=100, provider="", coming=()):
    """Return a demand; `coming` are shapes, and how many nodes it has of each."""
    job = None if number is None else JobId(number)
    rest = rest_of(request, coming)
    return Demand(
        job=job,
        userid=user,
        request=request,
        preferences=BurstPreferences(provider),
        rest=None if rest == request else rest,
        since=T0,
    )


def live_burst(name, pool, idle=True, jobs=frozenset(), **source):
    """Return a live burst of offer `local/small` that may take further jobs."""
    given = {"provider": "local", "offer": "small", "lasts": math.inf, **source}
    found = Source(burst=BurstId(name), **given)
    return LiveBurst(source=found, idle=idle, jobs=jobs, pool=pool)


def plan(*demands, lead=None, taken=(), offers=None, live=(), limits=None, **kw):
    """Return the plan. `taken` are names of slots that are not free, and never are;
    `busy` when ranks of slots come free, by the slot's name; `holders` whose they are;
    `drained` which ranks a person has drained, and why; `staying` which bursts stay
    without jobs, and until when.
    """
    lead = lead or identity()
    found = find_slots(lead)
    offers = {"local": [offer()]} if offers is None else offers
    health = kw.pop("health", {})
    coming = coming_bursts(kw.pop("coming", ()))
    known = provider_offers(offers, {}, Settings(), T0)
    market = offer_catalog(known, Failures(health, coming, T0))
    busy, in_use = kw.pop("busy", {}), kw.pop("in_use", {})
    there = {rank: each.burst for each in live for rank in each.pool.whole}
    ends = {r: busy[s.name] for s in found if s.name in busy for r in s.ranks}
    free = {r for s in found if s.name not in taken for r in s.ranks}
    drained = kw.pop("drained", {})
    ranks = LeasableRanks(
        free=frozenset(free - ends.keys() - there.keys() - drained.keys()),
        drained=drained,
        ends=ends,
        holders={**kw.pop("holders", {}), **there},
        staying=kw.pop("staying", {}),
    )
    totals = {each.key: each.offer.total for each in market.known}
    limits, purchases = settings(limits=limits or {}).limits, kw.pop("purchases", None)
    usage = Usage(limits, in_use, purchases, totals)
    whole_nodes = kw.pop("whole_nodes", False)
    context = PlanContext(
        now=T0,
        identity=lead,
        catalog=market,
        table=RankTable(found, ranks, market.providers),
        usage=usage,
        live=live,
        whole_nodes=whole_nodes,
        settings=PlanSettings(**kw),
    )
    return make_plan(demands, context)


def leases(made):
    return [
        (p.lease.slot, p.lease.provider, len(p.lease.ranks), list(p.jobs))
        for p in made.proposals
    ]


def reasons(made, job):
    verdict = made.decisions[job]
    return verdict.reason, [(r.offer, r.reason) for r in verdict.refusals]
