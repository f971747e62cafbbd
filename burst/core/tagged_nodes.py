# SPDX-License-Identifier: MIT
"""The answer to `tagged`, for programs that request nodes with tags.

It has all bursts and jobs with a tag, and all slots and offers of which nodes can be
requested, at one moment. With it and the methods that request, resize and take down
bursts, a program manages its nodes without another connection to the lead.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.cost import cost
from burst.core.jobs.queues import decide_on_queue
from burst.core.plan.offers import price_of
from burst.core.plan.slots import RankSlot
from burst.core.records import Records, is_usable
from burst.core.report import burst_note
from burst.core.world import World
from burst.model.burst import Burst, BurstId, State, Tag
from burst.model.hold import HELD_BY_US
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobState, JobView, LeadView
from burst.model.shape import Shape
from burst.provider import Offer


class JobRun(msgspec.Struct, frozen=True):
    """One run of a job in an isolated burst. Times are in seconds since the epoch."""

    began: float
    ended: float = 0.0
    """When the run ended; 0 while it lasts."""


class NodesUp(msgspec.Struct, frozen=True):
    """The nodes of a burst that can take jobs, and how much of them is free."""

    nodes: int = 0
    """The nodes whose broker is online and that are not drained."""
    free: int = 0
    """The nodes among these on which no job runs."""
    cores: int = 0
    cores_free: int = 0


class TaggedBurst(msgspec.Struct, frozen=True, kw_only=True):
    """A burst that has a tag, also for a while after its end."""

    id: BurstId
    tag: Tag
    state: str
    """The state, as in `burst status`."""
    live: bool
    """Whether something of it may exist."""
    usable: bool
    """Whether it is coming up or up."""
    created: float
    """When it was made, in seconds since the epoch."""
    nodes: int
    wanted: int
    """The number of nodes after a growth or shrink that is under way."""
    has_jobs: bool
    """Whether jobs are assigned to it."""
    up: NodesUp = NodesUp()
    isolated: bool = False
    job: JobId | None = None
    """The job that an isolated burst runs; None for other bursts."""
    run: JobRun | None = None
    """The run of that job; None if it has not begun there."""
    price: float = 0.0
    """The price per node and hour."""
    cost: float = 0.0
    """The cost so far."""
    note: str = ""
    """Why it is in its state, and what it waits for."""


class TaggedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job with a tag, as the lead shows it. Times are in seconds since the epoch."""

    id: JobId
    tag: Tag
    state: JobState
    nodes: int
    """The number of nodes that it asks for; 1 if it asks for cores only."""
    urgency: int
    """The urgency that it has, or will have once it is released."""
    t_submit: float
    t_start: float = 0.0
    t_finish: float = 0.0
    result: str = ""
    """completed, failed, canceled or timeout once it is inactive; empty before."""
    attributes: Mapping[str, str] = {}
    held_back: bool = False
    """Whether its user holds it, or its queue is stopped: it would not start even if it
    had nodes."""


class TaggedNodes(msgspec.Struct, frozen=True, kw_only=True):
    """All facts for a program that requests nodes with tags."""

    now: float
    """When the facts were read, in seconds since the epoch."""
    is_read: bool
    """Whether the lead can be read; if not, `jobs` is empty."""
    bursts: tuple[TaggedBurst, ...] = ()
    """The bursts with a tag, the oldest first."""
    jobs: tuple[TaggedJob, ...] = ()
    slots: tuple[RankSlot, ...] = ()
    offers: Mapping[str, tuple[Offer, ...]] = {}
    """The offers of each provider, with the site's prices; empty until it has answered.
    """

    def bursts_of(self, tag: Tag) -> list[TaggedBurst]:
        """Return the live bursts with a tag, the oldest first."""
        return [burst for burst in self.bursts if burst.live and burst.tag == tag]

    def tags_waiting(self) -> frozenset[Tag]:
        """Return the tags that have jobs that have not started."""
        return frozenset(job.tag for job in self.jobs if job.state in PENDING)


def tagged_nodes(
    records: Records, world: World, settings: Settings, now: float
) -> TaggedNodes:
    """Return all bursts and jobs with tags, and the slots and offers for requests."""
    lead = world.lead
    bursts = sorted(
        (burst for burst in records.bursts.values() if burst.lease.tag is not None),
        key=lambda burst: (burst.lease.created, burst.id),
    )
    return TaggedNodes(
        now=now,
        is_read=lead is not None,
        bursts=tuple(_burst(records, each, world, now) for each in bursts),
        jobs=() if lead is None else _jobs(records, lead, settings),
        slots=tuple(world.slots),
        offers={
            name: tuple(
                msgspec.structs.replace(
                    offer, price=price_of(name, offer, settings.prices)[0]
                )
                for offer in view.offers or ()
            )
            for name, view in world.providers.items()
        },
    )


def _burst(records: Records, burst: Burst, world: World, now: float) -> TaggedBurst:
    lease = burst.lease
    assert lease.tag is not None
    return TaggedBurst(
        id=burst.id,
        tag=lease.tag,
        state=burst.shown_state,
        live=burst.live,
        usable=is_usable(burst),
        created=lease.created,
        nodes=lease.nodes,
        wanted=burst.resize.nodes if burst.resize else lease.nodes,
        has_jobs=bool(burst.jobs),
        up=_up(burst, world.lead),
        isolated=lease.isolated is not None,
        job=lease.isolated_job,
        run=_run_in(burst),
        price=lease.price,
        cost=cost(records, burst, now),
        note=burst_note(burst, world) if burst.live else "",
    )


def _up(burst: Burst, lead: LeadView | None) -> NodesUp:
    lease = burst.lease
    if lease.isolated is not None:
        nodes = lease.nodes if burst.state is State.ONLINE else 0
        return NodesUp(nodes=nodes, cores=nodes * lease.shape.cores)
    if lead is None:
        return NodesUp()
    up = lead.usable.intersection(lease.ranks)
    none, whole = Shape(0), lease.shape.cores
    return NodesUp(
        nodes=len(up),
        free=len(up - lead.allocated),
        cores=len(up) * whole,
        cores_free=sum(min(lead.free.get(rank, none).cores, whole) for rank in up),
    )


def _run_in(burst: Burst) -> JobRun | None:
    if burst.lease.isolated is None:
        return None
    times = {event.name: event.timestamp for event in burst.events}
    began = times.get("online")
    if burst.exit_status is not None:
        # A short program may have ended before its instance was seen online.
        return JobRun(began or times["finish"], times["finish"])
    if began is None:
        return None
    if burst.state is State.ONLINE:
        return JobRun(began)
    return JobRun(began, times["exception"]) if burst.may_have_run else None


def _jobs(
    records: Records, lead: LeadView, settings: Settings
) -> tuple[TaggedJob, ...]:
    return tuple(
        TaggedJob(
            id=job.id,
            tag=tag,
            state=job.state,
            nodes=job.nodes_asked,
            urgency=job.later_urgency,
            t_submit=job.t_submit,
            t_start=job.t_start,
            t_finish=job.t_finish,
            result=job.result,
            attributes=job.attributes,
            held_back=_is_held_back(job, records, lead, settings),
        )
        for job in lead.jobs.values()
        if (tag := job.tag) is not None
    )


def _is_held_back(
    job: JobView, records: Records, lead: LeadView, settings: Settings
) -> bool:
    """Tell whether a pending job's queue is stopped, or its user holds it.

    A user's hold only shows after the daemon's hold has ended: both are urgency 0.
    """
    if job.state not in PENDING:
        return False
    if decide_on_queue(job, lead, settings.intake) is not None:
        return True
    hold = records.holds.get(job.id)
    return job.urgency == 0 and hold is not None and hold.state not in HELD_BY_US
