# SPDX-License-Identifier: MIT
"""The inputs and the results of one pass of the forecaster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set

import msgspec

from burst.config import PolicyRule, Settings
from burst.core.forecast.forecast import OwnNodesQueue
from burst.core.forecast.grades import Grade
from burst.core.jobs.burst_worth import assumed_to_burst, is_judged, worth_for_job
from burst.core.jobs.rules import RuleSet
from burst.core.plan.estimate import LATE_S, StartEstimate, judged_again_at
from burst.core.records import Records
from burst.core.world import World
from burst.model.active_job import ActiveJob, QueuePicture
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason


class Line(msgspec.Struct, frozen=True):
    """Facts whose change has jobs judged anew."""

    active: frozenset[JobId]
    """All jobs that run or wait for nodes."""
    own: frozenset[int]
    """Own ranks that are up."""
    rules: tuple[PolicyRule, ...]

    @classmethod
    def of(cls, picture: QueuePicture, own: OwnNodesQueue, settings: Settings) -> Line:
        """Return the facts of this moment."""
        jobs = (*picture.running, *picture.pending)
        return cls(
            frozenset(job.id for job in jobs), frozenset(own.ranks), settings.rules
        )


class Judged(msgspec.Struct, frozen=True):
    """The starts by which ticks judge jobs."""

    starts: Mapping[JobId, StartEstimate]
    """The expected starts of the jobs on which a tick may decide."""
    at: float
    line: Line

    @property
    def until(self) -> float:
        """When jobs are judged anew even if no job was submitted and none has ended."""
        starts = (start.expected for start in self.starts.values())
        return judged_again_at(starts, self.at)

    def stands(self, line: Line, unjudged: Set[JobId], now: float) -> bool:
        """Tell whether these starts still hold, and no unjudged job is without one."""
        waiting = (unjudged & line.active) - self.starts.keys()
        return line == self.line and now < self.until and not waiting


class Forecasts(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass found. Immutable, so any thread may read it."""

    at: float
    """When the pass was made, in seconds since the epoch."""
    starts: Mapping[JobId, StartEstimate]
    """The expected starts of all jobs that wait, as users are told."""
    judged: Judged
    run_times: Mapping[JobId, float]
    """For how many seconds jobs that wait are expected to run."""
    pending: tuple[ActiveJob, ...]
    """All jobs that waited, burstable or not."""
    grades: Mapping[str, Grade]

    def job(self, number: JobId) -> ActiveJob | None:
        """Return a job that waited; None if there is none of that id."""
        return next((job for job in self.pending if job.id == number), None)


class PassInputs(msgspec.Struct, frozen=True):
    """What the last tick saw and decided, if it could read the lead."""

    records: Records
    world: World
    decisions: Mapping[JobId, Decision]
    unjudged: Set[JobId]
    """Jobs that need a forecast before a tick can judge them."""

    @classmethod
    def of(
        cls, records: Records, world: World, decisions: Mapping[JobId, Decision]
    ) -> PassInputs:
        """Return the inputs that a tick gives."""
        unjudged = frozenset(
            job
            for job, decision in decisions.items()
            if decision.reason is Reason.NOT_FORECAST
        )
        return cls(records, world, decisions, unjudged)


def bursts_assumed(
    inputs: PassInputs, settings: Settings, now: float
) -> Callable[[JobId, float], bool] | None:
    """Return the function that tells which jobs are assumed to burst.

    None if there is only the default rule, and that asks for no worth.
    """
    records, world = inputs.records, inputs.world
    assert world.lead is not None
    if RuleSet(settings.rules).leaves_all:
        return None
    worth = worth_for_job(records, world, settings, now)
    return assumed_to_burst(worth, world.lead.jobs, inputs.decisions)


def next_late(starts: Mapping[JobId, StartEstimate], at: float) -> float:
    """Return when the first job is late that was not expected to start at once."""
    later = (start.expected for start in starts.values() if start.expected > at)
    return min(later, default=math.inf) + LATE_S


def judgeable(
    starts: Mapping[JobId, StartEstimate], inputs: PassInputs, own: OwnNodesQueue
) -> Mapping[JobId, StartEstimate]:
    """Return the starts of the jobs on which a tick may decide by them."""
    if own.leaves is None:
        return starts
    decisions = inputs.decisions
    return {job: at for job, at in starts.items() if is_judged(decisions.get(job))}


def without(
    starts: Mapping[JobId, StartEstimate], stale: Set[JobId]
) -> Mapping[JobId, StartEstimate]:
    """Return the starts of all jobs that are not in `stale`."""
    return {job: start for job, start in starts.items() if job not in stale}


def differ(before: PassInputs, now: PassInputs) -> bool:
    """Tell whether own nodes, queues or what the daemon does with jobs changed."""
    assert before.world.lead is not None
    assert now.world.lead is not None
    return (
        before.records.holds is not now.records.holds
        or before.records.bursts is not now.records.bursts
        or before.world.lead.usable != now.world.lead.usable
        or before.world.lead.queues != now.world.lead.queues
        or not now.unjudged <= before.unjudged
    )
