# SPDX-License-Identifier: MIT
"""How long a plan takes, and whether twice the work takes twice the time.

Jobs are a mix: a tenth of them ask for something that no other job asks for. Most jobs
find no free slot, as at a full site. Each measure names its slots and offers.

    python benchmarks/plan.py [--json]
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence

from benchmarks.table import Goal, Measure, main_of
from burst.config import LimitSettings, parse
from burst.core.plan.catalog import Failures, offer_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import Usage
from burst.core.plan.offers import provider_offers
from burst.core.plan.planner import make_plan
from burst.core.plan.promises import RESERVATION_S
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slots import find_slots
from burst.model.jobid import JobId
from burst.model.lead import Bootstrap, HostEntry, LeadIdentity
from burst.model.request import ResourceRequest
from burst.model.shape import Shape
from burst.provider import Offer

_NODE = Shape(32, 4)
_SLOT_SIZE = 8


def lead_with(slots: int) -> LeadIdentity:
    """Return a lead with a node of its own and `slots` rank slots."""
    names = [f"burst-{s}-{n}" for s in range(slots) for n in range(_SLOT_SIZE)]
    hosts = ("lead-0", *names)
    return LeadIdentity(
        kind="flux",
        version="0.88.0",
        uri="",
        owner="lead-0-00000000",
        hosts=hosts,
        shapes=(_NODE,) * len(hosts),
        bootstrap=Bootstrap(hosts=(HostEntry(host="lead-0"),)),
        endpoint="tcp://127.0.0.1:8050",
        certificate="",
    )


def demands(count: int) -> list[Demand]:
    """Return jobs of 50 users; a tenth of them are like no other job.

    They wait since so long that no ranks are kept for them until an unknown time.
    """
    draw = random.Random(1)
    made = []
    for number in range(count):
        nodes = draw.choice((1, 1, 2, 4, 8))
        cores = draw.randint(1, 1_000_000) if number % 10 == 0 else 1
        request = ResourceRequest(
            nodes=nodes,
            slots=nodes,
            cores_per_slot=cores % 31 + 1,
            constraint=f'{{"hostlist":["burst-{cores}-0"]}}' if cores > 31 else "",
            exclusive=True,
        )
        made.append(
            Demand(
                job=JobId(number + 1),
                userid=number % 50,
                request=request,
                since=-RESERVATION_S,
            )
        )
    return made


def offers(count: int) -> dict[str, Sequence[Offer] | None]:
    """Return `count` offers of ten providers, at different prices."""
    found: dict[str, Sequence[Offer] | None] = {}
    for provider in range(10):
        numbers = range(provider, count, 10)
        found[f"p{provider}"] = tuple(
            Offer(name=f"o{n}", shape=_NODE, max_nodes=64, price=1.0 + n)
            for n in numbers
        )
    return found


def plan(jobs: Sequence[Demand], lead: LeadIdentity, offered: int) -> Plan:
    """Make one plan from scratch, as a tick does."""
    slots = find_slots(lead)
    found = provider_offers(offers(offered), {}, parse({}, ""), 0.0)
    market = offer_catalog(found, Failures())
    usage = Usage(LimitSettings())
    free = frozenset(rank for slot in slots for rank in slot.ranks)
    table = RankTable(slots, LeasableRanks(free=free), market.providers)
    context = PlanContext(
        now=0.0, identity=lead, catalog=market, table=table, usage=usage
    )
    return make_plan(jobs, context)


def best_of(
    runs: int, jobs: Sequence[Demand], lead: LeadIdentity, offered: int
) -> float:
    """Return the seconds of the fastest of several runs."""
    times = []
    for _ in range(runs):
        gc.collect()
        began = time.perf_counter()
        made = plan(jobs, lead, offered)
        times.append(time.perf_counter() - began)
        assert len(made.decisions) == len(jobs)
    return min(times)


def measure() -> list[Measure]:
    """Return all measures."""
    few, many = lead_with(50), lead_with(1000)
    jobs = demands(200_000)
    small = best_of(5, jobs[:10_000], few, 20)
    large = best_of(3, jobs[:100_000], many, 20)
    twice = best_of(3, jobs, many, 20)
    return [
        Measure("10,000 jobs, 20 offers, 50 slots", small, "s", Goal("<", 0.1)),
        Measure("100,000 jobs, 20 offers, 1,000 slots", large, "s", Goal("<", 1.0)),
        Measure("200,000 jobs against 100,000", twice / large, "x", Goal("<", 2.3)),
    ]


if __name__ == "__main__":
    main_of(__doc__, measure)
