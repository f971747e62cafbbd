# SPDX-License-Identifier: MIT
"""What there is to run jobs on: our own ranks, and the room in live bursts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

import msgspec

from burst.config import DeadlineSettings, Settings
from burst.core.cost import idle_limit
from burst.core.plan.fit import NodePool, merged, rest_of
from burst.core.plan.offers import remaining_run_time
from burst.core.plan.sources import LiveBurst, Source
from burst.core.records import RecordsView
from burst.core.standing import stands
from burst.model.burst import Burst, BurstId, State
from burst.model.confinement import LENT
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity, LeadView
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

_OPEN = (State.PROVISION, State.JOIN, State.ONLINE)


def own_ranks(
    records: RecordsView, lead: LeadView, identity: LeadIdentity
) -> frozenset[int]:
    """Return the ranks that can run jobs and that no live burst leases.

    Where the instance has guests, ranks that may be lent are left out: without a burst
    such a rank is nobody's.
    """
    others = {rank for burst in records.live for rank in burst.lease.ranks}
    if identity.access.allow_guest_user:
        others |= identity.properties.get(LENT, frozenset())
    return lead.usable - others


class JobNodes(NamedTuple):
    """What a job needs beside the nodes of its bursts."""

    rest: ResourceRequest
    """What it needs beside nodes that it may count on: those that are up, and those
    that are on their way."""
    awaited: bool
    """Whether it needs nodes by which its bursts grow, and that are not up yet."""

    @property
    def missing(self) -> bool:
        """Whether it needs nodes beside those that it may count on."""
        return self.rest.slots > 0


def job_nodes(
    request: ResourceRequest, bursts: Sequence[Burst], lead: LeadView
) -> JobNodes:
    """Return what a job needs beside the nodes of these bursts."""
    usable = ((burst.lease.shape, usable_nodes(burst, lead)) for burst in bursts)
    there = (
        (burst.lease.shape, len(_counted_on(burst, lead) - lead.closed))
        for burst in bursts
    )
    grows = any(burst.coming for burst in bursts)
    return JobNodes(
        rest=rest_of(request, usable),
        awaited=grows and rest_of(request, there).slots > 0,
    )


def usable_nodes(burst: Burst, lead: LeadView) -> int:
    """Return how many nodes of a burst a job may count on."""
    if burst.state is not State.ONLINE or burst.lease.isolated:
        return burst.lease.nodes
    return len(_counted_on(burst, lead).union(burst.coming) - lead.closed)


def _counted_on(burst: Burst, lead: LeadView) -> frozenset[int]:
    """Return the ranks of an online burst that are there for jobs."""
    # A lost rank counts until its deadline: buying another for a glitch is expensive.
    there = burst.expected | lead.online.intersection(burst.lease.ranks)
    return there.difference(burst.leaving)


def lending_bursts(
    records: RecordsView, lead: LeadView, settings: Settings, now: float
) -> list[LiveBurst]:
    """Return the live bursts that may take further jobs, and what is free in them.

    In a burst that is not up yet, all is free except what its jobs will take.
    """
    usable = lead.usable
    lending = [
        burst
        for burst in records.live
        if burst.state in _OPEN and not burst.quarantined and not burst.lease.isolated
    ]
    pools = {burst.id: _free_nodes(burst, lead, usable) for burst in lending}
    _take_for_pending(lending, lead, pools)
    return [
        LiveBurst(
            source=msgspec.structs.replace(
                source_of(burst, settings.deadlines, now),
                stays=_stays(burst, lead, _idle_limit(burst, settings, now), now),
            ),
            jobs=frozenset(burst.jobs),
            idle=burst.idle_since is not None,
            pool=pools[burst.id],
        )
        for burst in lending
    ]


def source_of(burst: Burst, deadlines: DeadlineSettings, now: float) -> Source:
    """Return the facts that decide which further jobs may use a live burst."""
    lease = burst.lease
    return Source(
        provider=lease.provider,
        offer=lease.offer,
        price=lease.price,
        priced_by=lease.priced_by,
        guests=lease.guests,
        spot=lease.spot,
        lasts=remaining_run_time(lease, deadlines, now),
        burst=burst.id,
        nodes=lease.nodes,
        userids=frozenset(lease.userids),
        requester=lease.requester,
        tag=lease.tag,
    )


def _idle_limit(burst: Burst, settings: Settings, now: float) -> float:
    kept = stands(burst.lease, settings, now)
    return math.inf if kept else idle_limit(burst, settings)


def _stays(burst: Burst, lead: LeadView, idle: float, now: float) -> float:
    """Return for how many seconds a burst is kept if it gets no further job."""
    if burst.idle_since is not None:
        return max(0.0, burst.idle_since + idle - now)
    jobs = [lead.jobs[job] for job in burst.jobs if job in lead.jobs]
    return max((_time_left(job, now) for job in jobs), default=0.0)


def _time_left(job: JobView, now: float) -> float:
    if not job.duration:
        return math.inf
    return max(0.0, job.duration - (now - job.t_start if job.t_start else 0.0))


def _free_nodes(burst: Burst, lead: LeadView, usable: Set[int]) -> NodePool:
    """Return what no running job has of a burst; all of it if it is not online."""
    whole = dict.fromkeys(burst.lease.ranks, burst.lease.shape)
    pool = partial(NodePool, whole=whole, whole_nodes=lead.scheduler.whole_nodes)
    if burst.state is not State.ONLINE:
        return pool(whole)
    ranks = [rank for rank in burst.lease.ranks if rank in usable]
    free = {rank: lead.free.get(rank, Shape(0)) for rank in ranks}
    free |= {rank: burst.lease.shape for rank in burst.coming if rank not in free}
    free = {rank: free[rank] for rank in free.keys() - set(burst.leaving)}
    return pool(free)


def _take_for_pending(
    lending: Iterable[Burst], lead: LeadView, pools: Mapping[BurstId, NodePool]
) -> None:
    """Take from the pools what jobs that have not started will have of their bursts.

    A job whose nodes are not all free yet takes all that is free.
    """
    bursts_of: dict[JobId, list[BurstId]] = {}
    for burst in lending:
        for job in burst.unstarted:
            bursts_of.setdefault(job, []).append(burst.id)
    for job in sorted(bursts_of):
        view = lead.jobs.get(job)
        if view is None or view.request is None:
            continue
        its = [pools[burst] for burst in bursts_of[job]]
        shares = merged(its).fit(view.request)
        for pool in its:
            pool.take_shares(shares) if shares else pool.remove(pool.free)


def is_up(burst: Burst) -> bool:
    """Tell whether a job that is released now finds the burst's nodes."""
    joined = burst.lease.isolated is None
    return joined and burst.state is State.ONLINE and burst.lost_since is None
