# SPDX-License-Identifier: MIT
"""The data of the planner: demands, promises, and the plan that it makes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.core.plan.estimate import StartEstimate, judge, keep_purchase
from burst.model.burst import BurstId, Isolated, Lease, Tag
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences, ResourceRequest


class LiveBurstWorth(msgspec.Struct, frozen=True):
    """What a job's rule asks of a live burst that would be kept for the job."""

    here: StartEstimate
    run_time: float
    """For how long the job may run, in seconds."""
    asks: float
    now: float

    def pays(self, nodes: int, kept: float) -> bool:
        """Tell whether it pays to keep a burst of `nodes` nodes for the job.

        `kept` is for how many seconds the burst is kept anyway.
        """
        purchase = keep_purchase(nodes, self.run_time, kept)
        return judge(self.here, purchase, self.asks, self.now).pays


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be placed: a job, or a request ahead of jobs (then job is None)."""

    job: JobId | None
    userid: int | None
    request: ResourceRequest
    preferences: BurstPreferences = BurstPreferences()
    rest: ResourceRequest | None = None
    """What it needs beside the nodes that it has, or will get, from bursts made for it
    already; None if it has none."""
    since: float = 0.0
    """Since when it waits, seconds since the epoch."""
    duration: float = 0.0
    """How long the job may run, in seconds; 0 for no limit."""
    isolated: Isolated | None = None
    """What an isolated burst for it would run; None if it must not have one."""
    not_bought: Decision | None = None
    """Why nothing may be bought for it: it gets only nodes that are there or are bought
    anyway. None if nodes may be bought for it."""
    live_worth: LiveBurstWorth | None = None
    """What a live burst has to be worth to the job; None if it may have any."""
    tag: Tag | None = None
    """The job runs only on bursts with this tag; a requested burst gets this tag. None
    for all others."""
    standing: str = ""
    """For a request of a standing minimum: see `Lease.standing`. Else empty."""
    image: str = ""
    """Image of the followers of a burst that is made for it; empty for the provider's
    image. Only demands with a tag have one, so that no other job gets such a burst."""

    @property
    def lacks(self) -> ResourceRequest:
        """What it still needs of nodes that join."""
        return self.request if self.rest is None else self.rest

    def end(self, start: float) -> float:
        """Return the latest time at which the job has ended if it starts at `start`."""
        return start + self.duration if self.duration else math.inf


class Proposal(msgspec.Struct, frozen=True):
    """A burst to be made."""

    lease: Lease
    jobs: tuple[JobId, ...]


class Growth(msgspec.Struct, frozen=True):
    """Further nodes for a live burst."""

    burst: BurstId
    ranks: Sequence[int]
    job: JobId
    """The job for which the burst grows."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that a waiting job gets later, and that are kept for it."""

    job: JobId
    ranks: tuple[int, ...]
    """Empty for a job that gets an isolated burst once limits allow that."""
    start: float
    """From when they are kept, seconds since the epoch; 0 for at once, as nothing runs
    on them any more."""
    known: bool = True
    """Whether time limits tell when they become free. If False, they are kept until
    `start`."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to make, which live bursts get jobs, and a decision on every demand."""

    proposals: tuple[Proposal, ...] = ()
    growths: tuple[Growth, ...] = ()
    """At most one for each burst."""
    assignments: Mapping[JobId, tuple[BurstId, ...]] = {}
    """By job: the live bursts that give it nodes, which are one burst or several with
    idle nodes. Bursts that are to be made may give it further nodes."""
    promises: tuple[Promise, ...] = ()
    """In the order of the jobs."""
    overtaken: Mapping[JobId, int] = {}
    """By job that waits for ranks until an unknown time: how many of these nodes were
    given to other jobs, in this plan and in earlier ones."""
    ending: frozenset[BurstId] = frozenset()
    """Idle bursts that have to end: a job is promised their ranks and cannot use the
    bursts as they are, or a limit allows the job only once they are gone."""
    awaited: frozenset[BurstId] = frozenset()
    """Idle bursts that a waiting job will use, together with promised ranks that are
    busy now."""
    decisions: Mapping[JobId | None, Decision] = {}

    @property
    def gives(self) -> bool:
        """Whether some job is given nodes."""
        return bool(self.proposals or self.growths or self.assignments)
