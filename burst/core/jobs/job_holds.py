# SPDX-License-Identifier: MIT
"""Decides which jobs are held, get their urgency back, or change their queue.

A job that waits for absent ranks blocks the queue behind it under every scheduler that
Flux ships. So Flux's scheduler does not get it while its burst is on the way, or while
nothing that is up could ever run it: it is held, or in mode queue stays in the stopped
queue. In mode scheduler Flux has all jobs, as none of them blocks others there.

A job that Flux does not start although its lent nodes are free is put ahead of the
queue for a moment (`raised_urgencies.py`).

Where users are kept apart, a job is confined to its lent nodes before it is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from burst.config import IntakeSettings
from burst.core.actions import (
    Action,
    ConfineJobs,
    FailJob,
    HoldJobs,
    MoveJobs,
    ReleaseJobs,
)
from burst.core.jobs.confinement import Confinement, lacks_nodes
from burst.core.jobs.job_context import JobContext, never_on_own_nodes
from burst.core.jobs.queues import in_stopped_queue, queue_to_enter, takes_jobs
from burst.core.jobs.raised_urgencies import RaisedUrgencies
from burst.core.records import Transaction
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import PENDING, JobView

# A hold or release that shows no effect for this long is asked for again, in seconds.
ASK_AGAIN = 2.0
# The most holds and releases that are asked for in one tick: Flux takes a millisecond
# for each, and nothing else should wait for thousands. The next tick continues.
_AT_ONCE = 1000
# The most jobs that are failed in one tick, one request after the other. The lead tells
# of each that ends, so the next tick follows at once.
_FAILED_AT_ONCE = 100
_KEPT_WAITING = (HoldState.HOLDING, HoldState.HELD)


def plan_job_holds(
    tx: Transaction,
    context: JobContext,
    decisions: Mapping[JobId, Decision],
) -> None:
    """Decide for each pending job whether it is held, released, moved or failed."""
    lead, settings = context.lead, context.settings.intake
    failed: list[JobId] = []
    bursts_by_job = tx.bursts_by_job()
    plan = _HoldPlan(tx, context)
    raised = RaisedUrgencies(tx, context)
    for job_id, decision in decisions.items():
        if is_failed(decision, settings):
            failed.append(job_id)
            continue
        if decision.reason.about_job.left_alone:
            continue
        job, bursts = lead.jobs[job_id], bursts_by_job.get(job_id, [])
        blocks = _blocks_others(job, bursts, context)
        plan.choose_queue(job, bursts, blocks)
        plan.hold_or_release(job, bursts, blocks)
        urgency = raised.due(job, bursts, decision)
        if urgency:
            plan.set_urgency(job, urgency)
    for job in lead.jobs.values():
        if plan.confines(job):
            bursts = bursts_by_job.get(job.id, [])
            readable = job.request is not None
            blocks = readable and _blocks_others(job, bursts, context)
            plan.confine(job, blocks)
    for each in failed[:_FAILED_AT_ONCE]:
        tx.actions.append(FailJob(each, decisions[each].text()))
    tx.actions.extend(plan.actions())


class _HoldPlan:
    """The requests to the lead for the jobs of one tick.

    In its methods, `blocks` is whether a job would wait for absent ranks if Flux had it
    now.
    """

    def __init__(self, tx: Transaction, context: JobContext) -> None:
        self._tx, self._lead = tx, context.lead
        self._settings = context.settings.intake
        self._confinement = Confinement(tx, context.world, context.settings, tx.now)
        self._confining: dict[JobId, frozenset[int]] = {}
        self._lent: dict[JobId, frozenset[int]] = {}
        self._holding: list[JobId] = []
        self._releasing: dict[JobId, int] = {}
        self._moving: dict[JobId, str] = {}

    def actions(self) -> Iterator[Action]:
        """Yield one action of each kind for which there are jobs."""
        if self._holding:
            yield HoldJobs(tuple(self._holding))
        if self._releasing:
            yield ReleaseJobs(self._releasing)
        if self._moving:
            yield MoveJobs(self._moving, self._lent)
        if self._confining:
            yield ConfineJobs(self._confining)

    def choose_queue(self, job: JobView, bursts: list[Burst], blocks: bool) -> None:
        """Move a job to the queue where it belongs, if that takes jobs."""
        queue = queue_to_enter(job, bursts, blocks, self._settings)
        if not queue:
            return
        confined = self._confinement.concerns(job)
        if confined or takes_jobs(self._lead, queue):
            self._moving[job.id] = queue
            if confined:
                self._lent[job.id] = self._confinement.ranks(job)
            event = "job-hold" if blocks else "job-release"
            _record_of_job(self._tx, bursts, event, job.id)
        elif not blocks:
            # Its deadline runs all the same, as its nodes cost money.
            _record_release(self._tx, bursts, job.id)

    def hold_or_release(self, job: JobView, bursts: list[Burst], blocks: bool) -> None:
        """Hold a job that would block others, release one that would not."""
        tx, settings = self._tx, self._settings
        # A job that an isolated burst runs, or with a tag, is held in every mode.
        never_here = never_on_own_nodes(job) or any(
            burst.lease.isolated for burst in bursts
        )
        if blocks and (never_here or not _waits_harmlessly(job, settings)):
            _ask_since(tx, job, 0.0)
            if len(self._holding) < _AT_ONCE and _hold(tx, job):
                self._holding.append(job.id)
                _record_of_job(tx, bursts, "job-hold", job.id)
        elif not in_stopped_queue(job, settings) and self._confinement.is_due(job):
            # Flux would deny it now, as it has no nodes. Its deadline runs anyway.
            _ask_since(tx, job, tx.now if bursts else 0.0)
            _record_release(tx, bursts, job.id)
        elif len(self._releasing) < _AT_ONCE and _release(tx, job):
            hold = tx.holds[job.id]
            self._releasing[job.id] = hold.expected_urgency
            _ask_since(tx, job, tx.now if bursts else 0.0)
            if hold.letting:  # recorded when its nodes were given to it
                _record_release(tx, bursts, job.id)
            else:
                _record_of_job(tx, bursts, "job-release", job.id)
        elif not blocks and not in_stopped_queue(job, settings):
            # A job that was never held counts as released once its nodes are up.
            _record_release(tx, bursts, job.id)

    def set_urgency(self, job: JobView, urgency: int) -> None:
        """Give a released job another urgency."""
        self._releasing[job.id] = urgency

    def confines(self, job: JobView) -> bool:
        """Tell whether a job is to be confined to other ranks, and is not moved."""
        return (
            self._confinement.is_due(job)
            and job.state in PENDING
            and job.id not in self._moving
            and len(self._confining) < _AT_ONCE
        )

    def confine(self, job: JobView, blocks: bool) -> None:
        """Confine a job to the ranks of its bursts, or to none once it is safe.

        Flux denies a job that could not run on what its constraint leaves. So ranks are
        taken from a job that is too large for own nodes only after it was held, even if
        its user has undone that.
        """
        if in_stopped_queue(job, self._settings):
            # Its ranks are given to it when it is moved.
            if job.confined_to is None or job.confined_to:
                self._moving[job.id], self._lent[job.id] = job.queue, frozenset()
            return
        ranks, before = self._confinement.ranks(job), job.confined_to
        hold = self._tx.holds.get(job.id)
        taken_back = hold is not None and hold.state is HoldState.TAKEN_BACK
        waits = job.urgency == 0 or self._settings.mode == "scheduler"
        more = before is not None and ranks > before
        if waits or taken_back or not blocks or more:
            self._confining[job.id] = ranks


def is_failed(decision: Decision, settings: IntakeSettings) -> bool:
    """Tell whether the decision on a job is one for which jobs are failed.

    They can never get nodes. In mode hold none are failed.
    """
    return decision.reason.about_job.final and settings.fails_impossible


def _waits_harmlessly(job: JobView, settings: IntakeSettings) -> bool:
    """Tell whether the job needs no hold to keep it from blocking others."""
    if settings.mode == "queue":
        return job.queue in (settings.queue, settings.ready)
    return settings.mode == "scheduler"


def _blocks_others(job: JobView, bursts: list[Burst], context: JobContext) -> bool:
    """Tell whether the job, if Flux had it now, would wait for absent ranks."""
    if bursts:
        return lacks_nodes(job.request, bursts, context.lead)
    # A job that lost its attribute, or its rule, is not held any more.
    return context.rules.may_burst(job) and not context.may_wait(job)


def _hold(tx: Transaction, job: JobView) -> bool:
    """Record the intent to hold a job; tell whether to ask for it now."""
    hold = tx.holds.get(job.id)
    if hold is not None and hold.state is HoldState.HELD:
        return False
    if hold is None or hold.state in (HoldState.RELEASING, HoldState.RELEASED):
        tx.holds[job.id] = Hold(
            urgency=hold.urgency if hold else job.urgency,
            state=HoldState.HOLDING,
            since=tx.now,
            expected_urgency=_shown_before(hold, job),
            expired=hold.expired if hold else 0.0,
            stood=hold.stood if hold else "",
            requested=hold is not None and hold.requested,
        )
        return True
    if hold.state is HoldState.HOLDING and tx.now - hold.since > ASK_AGAIN:
        tx.set_hold_state(job.id, HoldState.HOLDING)
        return True
    return False


def _shown_before(hold: Hold | None, job: JobView) -> int:
    """Return the urgency that the lead may show for a job until it is held."""
    if hold is None:
        return job.urgency
    return hold.raised_to or job.urgency or hold.expected_urgency


def _release(tx: Transaction, job: JobView) -> bool:
    """Record the intent to release a job; tell whether to ask for it now."""
    hold = tx.holds.get(job.id)
    if hold is None:
        return False
    late = hold.state is HoldState.RELEASING and tx.now - hold.since > ASK_AGAIN
    if hold.state in _KEPT_WAITING or late:
        tx.holds[job.id] = msgspec.structs.replace(
            hold.then(HoldState.RELEASING, tx.now), expected_urgency=hold.urgency
        )
        return True
    return False


def _ask_since(tx: Transaction, job: JobView, now: float) -> None:
    """Record since when the lead is asked to let a held job start; 0 if it is not."""
    hold = tx.holds.get(job.id)
    if hold is not None and bool(hold.letting) is not bool(now):
        tx.holds[job.id] = msgspec.structs.replace(hold, letting=now)


def _record_release(tx: Transaction, bursts: list[Burst], job: JobId) -> None:
    untold = [burst for burst in bursts if burst.times[job].released is None]
    _record_of_job(tx, untold, "job-release", job)


def _record_of_job(tx: Transaction, bursts: list[Burst], name: str, job: JobId) -> None:
    for burst in bursts:
        tx.record(burst.id, name, {"id": format_f58(job)})
