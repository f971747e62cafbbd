# SPDX-License-Identifier: MIT
"""What there is to run jobs on: our own ranks, and the room in live bursts."""

from __future__ import annotations

from collections.abc import Sequence

from burst.config import Settings
from burst.core.placement.demand import NodePool, nodes_needed
from burst.core.placement.lease_times import remaining_run_time
from burst.core.placement.plan import BurstCapacity
from burst.core.records import RecordsView
from burst.model.burst import Burst, State
from burst.model.lead import LeadView
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

_OPEN = (State.PROVISION, State.JOIN, State.ONLINE)


def own_ranks(records: RecordsView, lead: LeadView) -> list[int]:
    """Return the ranks that can run jobs and that no live burst leases."""
    leased = {rank for burst in records.live for rank in burst.lease.ranks}
    unfit = leased | lead.torpid | lead.excluded | set(lead.drained)
    return sorted(lead.online - unfit)


def usable_nodes(burst: Burst, lead: LeadView) -> int:
    """Return with how many nodes a job may count on the burst."""
    if burst.state is not State.ONLINE or burst.lease.isolated:
        return burst.lease.nodes
    # What was lost counts until its deadline: buying more for a glitch is dear.
    there = burst.expected | lead.online.intersection(burst.lease.ranks)
    return len(there - lead.drained.keys() - lead.excluded)


def missing_nodes(
    request: ResourceRequest, bursts: Sequence[Burst], lead: LeadView
) -> tuple[int, int]:
    """Return how many nodes a job lacks beside its bursts, and how many they have."""
    coming = sum(usable_nodes(burst, lead) for burst in bursts)
    need = nodes_needed(request, bursts[0].lease.shape)
    return max(0, need - coming), coming


def burst_capacities(
    records: RecordsView, lead: LeadView, settings: Settings, now: float
) -> list[BurstCapacity]:
    """Return the live bursts that may take further jobs, and what is free in them.

    Of a burst that is not up yet that is all of it but what its jobs will take.
    """
    capacities: list[BurstCapacity] = []
    share = settings.plan.share
    for burst in records.live:
        if burst.quarantined or burst.state not in _OPEN or (burst.jobs and not share):
            continue
        if burst.lease.isolated:
            continue
        whole = dict.fromkeys(burst.lease.ranks, burst.lease.shape)
        free = whole
        if burst.state is State.ONLINE:
            free = {
                rank: lead.free.get(rank, Shape(0)) for rank in _usable(burst, lead)
            }
        pool = NodePool(free, whole)
        for job in sorted(burst.jobs - burst.started):
            view = lead.jobs.get(job)
            if view and view.request and not pool.take(view.request):
                # A job with several bursts has all of each.
                pool = NodePool({}, {})
        capacities.append(
            BurstCapacity(
                burst=burst.id,
                userids=frozenset(burst.lease.userids),
                provider=burst.lease.provider,
                price=burst.lease.price,
                nodes=burst.lease.nodes,
                idle=burst.idle_since is not None,
                lasts=remaining_run_time(burst.lease, settings.deadlines, now),
                pool=pool,
            )
        )
    return capacities


def is_up(burst: Burst) -> bool:
    """Tell whether a job that is released now finds the burst's nodes."""
    joined = burst.lease.isolated is None
    return joined and burst.state is State.ONLINE and burst.lost_since is None


def _usable(burst: Burst, lead: LeadView) -> list[int]:
    unfit = lead.torpid | lead.excluded | set(lead.drained)
    return [r for r in burst.lease.ranks if r in lead.online and r not in unfit]
