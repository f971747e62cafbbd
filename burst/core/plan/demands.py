# SPDX-License-Identifier: MIT
"""What the planner speaks of: demands, promises, and the plan that it makes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from burst.core.worth.estimate import StartEstimate, judge, keep_purchase
from burst.model.burst import BurstId, Isolated, Lease, Tag
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences, ResourceRequest


class LiveBurstWorth(msgspec.Struct, frozen=True):
    """What a job's rule asks of live bursts, which would be kept for the job."""

    here: StartEstimate
    run_time: float
    """For how long the job may run, in seconds."""
    asks: float
    now: float

    def pays(self, nodes: int, kept: float) -> bool:
        """Tell whether it pays to keep a burst that is kept so many seconds anyway."""
        purchase = keep_purchase(nodes, self.run_time, kept)
        return judge(self.here, purchase, self.asks, self.now).pays


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be placed: a job, or a request ahead of jobs (then job is None)."""

    job: JobId | None
    userid: int | None
    request: ResourceRequest
    preferences: BurstPreferences = BurstPreferences()
    coming: int = 0
    """Nodes that bursts made for it will bring already."""
    since: float = 0.0
    """Since when it waits, seconds since the epoch."""
    duration: float = 0.0
    """How long the job may run, in seconds; 0 for no limit."""
    isolated: Isolated | None = None
    """What an isolated burst would be for; None if there must not be one."""
    not_bought: Decision | None = None
    """Why nothing is bought for it; it may have what is there or bought anyway. None if
    something may be."""
    live_worth: LiveBurstWorth | None = None
    """What a live burst has to be worth to the job; None: it may have any."""
    tag: Tag | None = None
    """On bursts with this tag alone the job is to run, or the requested burst has it.
    None for all others."""
    standing: str = ""
    """Of a request for a standing minimum: as `Lease.standing`."""
    image: str = ""
    """Of the followers of a burst that is made for it; empty for its provider's. Of
    demands with a tag alone, so that no other job is given such a burst."""

    def end(self, start: float) -> float:
        """Return when the job will have ended at the latest if it starts then."""
        return start + self.duration if self.duration else math.inf


class Proposal(msgspec.Struct, frozen=True):
    """A burst to be made."""

    lease: Lease
    jobs: tuple[JobId, ...]


class Growth(msgspec.Struct, frozen=True):
    """Further nodes for a live burst."""

    burst: BurstId
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    job: JobId
    """For which it grows."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a job that waits: ranks that it gets later, and that are kept."""

    job: JobId
    ranks: tuple[int, ...]
    start: float
    """From when they are kept, seconds since the epoch; 0: at once, as nothing runs on
    them any more."""
    known: bool = True
    """Whether time limits say when they are free. Else they are kept until `start`."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to make, which live bursts get jobs, and a decision on every demand."""

    proposals: tuple[Proposal, ...] = ()
    growths: tuple[Growth, ...] = ()
    """Of no burst more than one."""
    assignments: Mapping[JobId, tuple[BurstId, ...]] = {}
    """Jobs that get nodes of live bursts: of one, or idle ones of several, or of these
    and of bursts that are to be made."""
    promises: tuple[Promise, ...] = ()
    """In the order of the jobs."""
    overtaken: Mapping[JobId, int] = {}
    """Of a job that waits for ranks of which no limit tells the end: how many nodes of
    these were given to others, in this plan and before."""
    ending: frozenset[BurstId] = frozenset()
    """Idle bursts whose ranks are promised to a job, which cannot use them as they
    are, or that a limit needs gone for it."""
    awaited: frozenset[BurstId] = frozenset()
    """Idle bursts that a job will have with what is promised to it and is busy now."""
    decisions: Mapping[JobId | None, Decision] = {}

    @property
    def gives(self) -> bool:
        """Whether some job is given nodes."""
        return bool(self.proposals or self.growths or self.assignments)
