# SPDX-License-Identifier: MIT
"""Forecasts when each pending job starts on own nodes, by a simulation of the queue.

Own nodes are those that no burst leases. A job that could not run on them even if all
of them were idle never starts there and blocks nobody: a burstable one is held, or
skipped by sched-burst.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    KeysView,
    Mapping,
    Sequence,
    Set,
)
from functools import cache
from typing import Any, NamedTuple

import msgspec

from burst.core.forecast.history import JobKind, RunHistory, RunTime
from burst.core.forecast.queue_order import (
    Leaves,
    PendingJob,
    RunningJob,
    Scheduling,
    estimate_starts,
)
from burst.core.jobs.job_context import never_on_own_nodes
from burst.core.plan.capacity import own_ranks
from burst.core.plan.constraints import Constraints
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.fit import NodePool, least_cores
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.active_job import ActiveJob, QueuePicture
from burst.model.hold import HELD_BY_US, Hold
from burst.model.jobid import JobId
from burst.model.lead import LeadView
from burst.model.request import ResourceRequest
from burst.model.scheduler import Order, Scheduler, order_of

NEVER = StartEstimate(expected=math.inf, latest=math.inf, earliest=math.inf)
"""The estimate for a job that own nodes could not hold even if they were idle."""
_EXPEDITED = 31


class OwnNodesQueue(msgspec.Struct, frozen=True):
    """What a forecast needs to know of own nodes that are up, and of their queue."""

    idle: NodePool
    """The nodes, as if nothing ran on them."""
    constraints: Constraints
    elsewhere: frozenset[JobId]
    """Jobs that start elsewhere: a burst is made for them, or they are held, and are
    not to run on own nodes."""
    holds: Mapping[JobId, Hold]
    stopped: frozenset[str]
    """Queues in which no job starts."""
    scheduler: Scheduler
    leaves: Callable[[JobId, float], bool] | None = None
    """Tells by a job and its start whether a burst is assumed for it; None if none is
    assumed for any job."""

    @property
    def ranks(self) -> KeysView[int]:
        """The own nodes."""
        return self.idle.whole.keys()

    def need(self, request: ResourceRequest | None) -> tuple[Any, ...] | None:
        """Return what a job takes; None if own nodes could never hold it."""
        if request is None:
            return None
        admitted = self.constraints.admitted_to(request)
        return (request, admitted) if self.idle.fit(request, admitted) else None


def own_nodes_queue(records: RecordsView, world: World) -> OwnNodesQueue:
    """Return the own nodes by this view of the lead, which can be read."""
    assert world.lead is not None
    lead, shapes = world.lead, world.identity.shapes
    ranks = sorted(own_ranks(records, lead, world.identity))
    own = {rank: shapes[rank] for rank in ranks}
    return OwnNodesQueue(
        idle=NodePool(own, own, whole_nodes=lead.scheduler.whole_nodes),
        constraints=Constraints(world.identity),
        elsewhere=_elsewhere(records, lead),
        holds=records.holds,
        stopped=frozenset(n for n, q in lead.queues.items() if not q.started),
        scheduler=lead.scheduler,
    )


def _elsewhere(records: RecordsView, lead: LeadView) -> frozenset[JobId]:
    assigned = frozenset(job for burst in records.live for job in burst.jobs)
    return assigned.union(
        job.id
        for job in lead.jobs.values()
        if job.urgency == 0 and never_on_own_nodes(job)
    )


class StartForecast(msgspec.Struct, frozen=True):
    """What is known of the jobs that wait for own nodes."""

    starts: Mapping[JobId, StartEstimate]
    run_times: Mapping[JobId, float]
    """For how many seconds they are expected to run, where that is known."""


def forecast(
    picture: QueuePicture, own: OwnNodesQueue, history: RunHistory, now: float
) -> StartForecast:
    """Return when each job of the picture that waits for nodes starts.

    Jobs that start elsewhere, those that their user holds, and those of a stopped queue
    are left out: own nodes that come free do not start them.
    """
    found: dict[JobId, StartEstimate] = {}
    waiting = []
    need_of = cache(own.need)
    for job in line_up(picture.pending, own.elsewhere, own.holds, own.stopped):
        need = need_of(job.request)
        if need is None:
            found[job.id] = NEVER
        else:
            cores, run_time = least_cores(need[0]), _run_time(job, history, now)
            waiting.append(PendingJob(job.id, need, cores, run_time, job.queue))
    running = []
    free = own.idle.copy()
    for job in picture.running:
        share = {rank: job.taken[rank] for rank in job.taken.keys() & own.ranks}
        if share:
            free.take_shares(share)
            running.append(RunningJob(job.id, share, _run_time(job, history, now)))
    for queue in separate_queues(waiting, own.scheduler, own.ranks):
        near = [job for job in running if not queue.ranks.isdisjoint(job.share)]
        scheduling = Scheduling(queue.order, _asked(own, queue.jobs))
        found.update(estimate_starts(now, free, near, queue.jobs, scheduling))
    expected = ((job.job, job.run_time.expected) for job in waiting)
    return StartForecast(found, {job: s for job, s in expected if s < math.inf})


def _asked(own: OwnNodesQueue, jobs: Sequence[PendingJob]) -> Leaves | None:
    """Return the function that tells whether the job at a place leaves the queue."""
    leaves = own.leaves
    return None if leaves is None else lambda place, at: leaves(jobs[place].job, at)


def line_up(
    pending: Iterable[ActiveJob],
    elsewhere: Collection[JobId],
    holds: Mapping[JobId, Hold],
    stopped: Collection[str] = (),
) -> list[ActiveJob]:
    """Return the jobs that wait for own nodes, in the order in which Flux takes them.

    A job that the daemon holds has the place of the urgency that it had before, as it
    is released as soon as own nodes are free for it.
    """
    line = []
    moved = False
    for job in pending:
        if job.id in elsewhere or job.queue in stopped:
            continue
        if job.priority:
            line.append(job)
            continue
        hold = holds.get(job.id)
        if hold is not None and hold.state in HELD_BY_US:
            priority = 2**32 - 1 if hold.urgency == _EXPEDITED else hold.urgency
            line.append(msgspec.structs.replace(job, priority=priority))
            moved = True
    if moved:
        line.sort(key=lambda job: job.id)
        line.sort(key=lambda job: -job.priority)
    return line


def kind_of(job: ActiveJob) -> JobKind:
    """Return the kind that a job's run time is compared by; its size is its cores."""
    request = job.request
    cores = request.slots * request.cores_per_slot if request else 0
    if request and request.exclusive:
        cores = max(cores, request.nodes)
    return JobKind(job.userid, job.name, cores)


def _run_time(job: ActiveJob, history: RunHistory, now: float) -> RunTime:
    elapsed = max(0.0, now - job.t_start) if job.t_start else 0.0
    return history.expect(kind_of(job), job.duration or math.inf, elapsed)


_UNNAMED = "default"


class SeparateQueue(NamedTuple):
    """Jobs that wait for the same nodes, in their order."""

    order: Order
    jobs: list[PendingJob]
    ranks: Set[int]
    """Nodes on which they may run."""


def separate_queues(
    waiting: Sequence[PendingJob], scheduler: Scheduler, ranks: Set[int]
) -> list[SeparateQueue]:
    """Return the queues that have no node in common; `ranks` are all own nodes.

    Fluxion serves each of them by itself, by its own policy: the first job of one does
    not keep jobs of others waiting. Queues that share nodes count as one. Other
    schedulers have one order for the jobs of all queues.
    """
    if not scheduler.is_fluxion:
        return [SeparateQueue(scheduler.order, list(waiting), ranks)]
    groups: list[tuple[Set[str], Set[int]]] = []
    kinds = {(job.queue, id(job.need)): job.need[1] for job in waiting}
    for (queue, _), admitted in kinds.items():
        queues: Set[str] = {queue}
        reached: Set[int] = ranks if admitted is None else admitted & ranks
        apart = []
        for each in groups:
            if queue in each[0] or not reached.isdisjoint(each[1]):
                queues, reached = queues | each[0], reached | each[1]
            else:
                apart.append(each)
        groups = [*apart, (queues, reached)]
    return [
        SeparateQueue(
            _order(queues, scheduler),
            [job for job in waiting if job.queue in queues],
            reached,
        )
        for queues, reached in groups
    ]


def _order(queues: Set[str], scheduler: Scheduler) -> Order:
    names = {queue or _UNNAMED for queue in queues}
    return order_of({name: scheduler.policies.get(name, "") for name in names})
