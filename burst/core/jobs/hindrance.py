# SPDX-License-Identifier: MIT
"""What keeps Flux from starting a job whose nodes are online, as far as Flux shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from burst.core.plan.constraints import Constraints
from burst.core.plan.fit import NodePool
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView, LeadIdentity, LeadView
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

_NAMED = 3


def find_hindrance(
    job: JobView,
    bursts: Sequence[Burst],
    world: World,
    constraints: Constraints,
    facts: Mapping[str, Any],
) -> Decision | None:
    """Return what stands in the way of a job that Flux may start; None if nothing does.

    `facts` are part of every such decision.
    """
    lead = world.lead
    assert lead is not None
    assert job.request is not None
    if job.state is not JobState.SCHED or not job.urgency:
        return None
    if not job.priority:
        return Decision(Reason.PRIORITY_ZERO, facts)
    ranks = _ranks_of(bursts, lead, constraints.admitted_to(job.request))
    found = _on_its_nodes(job.request, ranks, lead, world.identity)
    if found is not None:
        reason, there = found
        more = {**facts, "ranks": format_idset(there)}
        if reason is not Reason.NODES_CLEANED:
            more["jobs"] = _jobs_on(there, lead)
        return Decision(reason, more)
    ahead = [other.id for other in lead.jobs.values() if _is_ahead(other, job, lead)]
    if ahead:
        return Decision(Reason.JOBS_AHEAD, {**facts, "jobs": _names(ahead)})
    return None


def is_displaced(
    job: JobView,
    bursts: Sequence[Burst],
    world: World,
    constraints: Constraints,
    until: float,
) -> bool:
    """Tell whether other jobs have the nodes of a job, and may for longer than `until`.

    Flux gives lent nodes to whichever job fits first, such as one that was submitted a
    moment ago. A job that fits on other free lent nodes is not displaced: Flux starts
    it there.
    """
    assert world.lead is not None
    lead, identity = world.lead, world.identity
    assert job.request is not None
    if job.state is not JobState.SCHED or not (job.urgency and job.priority):
        return False
    admitted = constraints.admitted_to(job.request)
    ranks = _ranks_of(bursts, lead, admitted)
    found = _on_its_nodes(job.request, ranks, lead, identity)
    if found is None or found[0] is not Reason.NODES_TAKEN:
        return False
    taken = found[1]
    on = [other for other in lead.jobs.values() if other.ranks & taken]
    # The job itself may have started on these, and the lead has not told us yet.
    unexplained = taken.difference(*(other.ranks for other in on))
    if unexplained or any(o.duration and o.t_start + o.duration <= until for o in on):
        return False
    lent = {rank for slot in world.slots for rank in slot.ranks}
    whole = {rank: identity.shapes[rank] for rank in lent & lead.usable}
    free = {rank: lead.free[rank] for rank in whole if rank in lead.free}
    sole = lead.scheduler.whole_nodes
    return not NodePool(free, whole, whole_nodes=sole).fit(job.request, admitted)


def _ranks_of(
    bursts: Sequence[Burst], lead: LeadView, admitted: frozenset[int] | None
) -> frozenset[int]:
    """Return the ranks of bursts on which a job can start, by its constraint, too."""
    ranks = frozenset().union(*(burst.expected for burst in bursts)) & lead.usable
    return ranks if admitted is None else ranks & admitted


def _on_its_nodes(
    request: ResourceRequest,
    ranks: frozenset[int],
    lead: LeadView,
    identity: LeadIdentity,
) -> tuple[Reason, frozenset[int]] | None:
    """Return why nodes of a job are taken, and which; None if none is in its way.

    It may lack nodes all the same, such as one that a person has drained.
    """
    whole = {rank: identity.shapes[rank] for rank in ranks}
    idle = {rank: shape for rank, shape in whole.items() if rank not in lead.allocated}
    if NodePool(idle, whole).fit(request):
        return None
    if cleaned := ranks & lead.housekeeping.keys():
        return Reason.NODES_CLEANED, cleaned
    taken = ranks & lead.allocated
    if not taken:
        return None
    free = {rank: lead.free[rank] for rank in ranks if rank in lead.free}
    fits = bool(NodePool(free, whole).fit(request))
    return (Reason.NODES_SHARED if fits else Reason.NODES_TAKEN), taken


def _is_ahead(other: JobView, job: JobView, lead: LeadView) -> bool:
    """Tell whether Flux looks at another job that waits before it looks at this one."""
    queue = lead.queues.get(other.queue)
    waits = other.state is JobState.SCHED and other.priority > 0
    waits = waits and (queue is None or queue.started)
    return waits and (-other.priority, other.id) < (-job.priority, job.id)


def _jobs_on(ranks: frozenset[int], lead: LeadView) -> str:
    known = [job.id for job in lead.jobs.values() if job.ranks & ranks]
    return _names(known) if known else "a job that is not burstable"


def _names(jobs: Iterable[JobId]) -> str:
    """Return the first of these jobs by name, and how many there are besides."""
    found = sorted(jobs)
    names = " ".join(format_f58(job) for job in found[:_NAMED])
    further = len(found) - _NAMED
    word = "job" if len(found) == 1 else "jobs"
    return f"{word} {names}" + (f" and {further} more" if further > 0 else "")
