# SPDX-License-Identifier: MIT
"""Which jobs are held, which get their urgency back, and which change their queue.

A job that waits for absent ranks blocks the queue behind it under every scheduler that
Flux ships. So it is kept from Flux for exactly as long as it would: while its burst is
on the way, or while nothing that is up could ever run it. It is held, or in mode queue
stays in the stopped queue. In mode scheduler Flux has all jobs, as it blocks nobody.
"""

from __future__ import annotations

import itertools

import msgspec

from burst.config import IntakeSettings
from burst.core.actions import FailJob, HoldJobs, MoveJobs, ReleaseJobs
from burst.core.behaviour import behaviour_of
from burst.core.placement.capacity import is_up, missing_nodes
from burst.core.records import Transaction
from burst.core.select.triage import JobTriage, in_stopped_queue, wants_isolated
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobView, LeadView
from burst.model.reason import Reason

# A hold or release that shows no effect for this long is asked for again, in seconds.
ASK_AGAIN = 2.0
# So many holds and releases are asked for in one tick: Flux takes a millisecond for
# each, and the rest of the world must not wait for thousands. The next tick goes on.
_AT_ONCE = 1000
# So many jobs are failed in one tick, one request after the other. The lead tells of
# each that ends, so that the next tick follows at once.
_FAILED_AT_ONCE = 100
_PARKED = (HoldState.HOLDING, HoldState.HELD)


def plan_job_holds(
    tx: Transaction,
    lead: LeadView,
    intake: JobTriage,
    verdicts: dict[JobId, Decision],
    settings: IntakeSettings,
) -> None:
    """Decide on hold, release, queue or failure of every pending job."""
    _fail_some(tx, verdicts, settings)
    bursts_of = tx.bursts_by_job()
    holding: list[JobId] = []
    releasing: dict[JobId, int] = {}
    moving: dict[JobId, str] = {}
    for job_id, verdict in verdicts.items():
        job = lead.jobs[job_id]
        if verdict.reason.about_job.left_alone or _is_over(verdict, settings):
            continue
        bursts = bursts_of.get(job_id, [])
        unread = verdict.reason is Reason.NOT_YET_READ
        blocks = unread or _blocks_others(job, bursts, intake, lead)
        queue = _other_queue(job, bursts, blocks, settings)
        shut = bool(queue) and not _takes_jobs(lead, queue)
        if shut and not blocks:
            # Its time runs all the same: the nodes are paid for.
            _tell_unreleased(tx, bursts, job_id)
        elif queue and not shut:
            moving[job_id] = queue
            told = "job-hold" if blocks else "job-release"
            _tell_bursts(tx, bursts, told, job_id)
        away = wants_isolated(job) or any(
            behaviour_of(burst).holds_its_job for burst in bursts
        )
        # Where a job runs elsewhere, Flux must not be able to start it.
        if blocks and (away or not _waits_harmlessly(job, settings)):
            if len(holding) < _AT_ONCE and _hold(tx, job):
                holding.append(job_id)
                _tell_bursts(tx, bursts, "job-hold", job_id)
        elif len(releasing) < _AT_ONCE and _release(tx, job, settings):
            releasing[job_id] = tx.holds[job_id].shown
            _tell_bursts(tx, bursts, "job-release", job_id)
        elif not blocks and not in_stopped_queue(job, settings):
            # One that was never held is as good as released once its nodes are up.
            _tell_unreleased(tx, bursts, job_id)
    asked = HoldJobs(tuple(holding)), ReleaseJobs(releasing), MoveJobs(moving)
    some = bool(holding), bool(releasing), bool(moving)
    tx.actions.extend(itertools.compress(asked, some))


def _fail_some(
    tx: Transaction, verdicts: dict[JobId, Decision], settings: IntakeSettings
) -> None:
    """Fail jobs that nothing could ever serve, where the site wants that."""
    over = (job for job, v in verdicts.items() if _is_over(v, settings))
    for job in itertools.islice(over, _FAILED_AT_ONCE):
        tx.actions.append(FailJob(job, verdicts[job].text()))


def _is_over(verdict: Decision, settings: IntakeSettings) -> bool:
    """Tell whether nothing could ever serve a job, and the site wants it failed."""
    return verdict.reason.about_job.final and settings.fails_impossible


def _waits_harmlessly(job: JobView, settings: IntakeSettings) -> bool:
    """Tell whether the job needs no hold to keep it from blocking others."""
    if settings.mode == "queue":
        return job.queue in (settings.queue, settings.ready)
    return settings.mode == "scheduler"


def _other_queue(
    job: JobView, bursts: list[Burst], blocks: bool, settings: IntakeSettings
) -> str:
    """Return the queue in which the job belongs, empty if it is there.

    Of those in no queue of ours, nothing is known that would speak for another.
    """
    if in_stopped_queue(job, settings):
        return settings.ready if bursts and not blocks else ""
    ready = settings.mode == "queue" and job.queue == settings.ready
    return settings.queue if ready and blocks else ""


def _takes_jobs(lead: LeadView, queue: str) -> bool:
    """Tell whether Flux moves a job into the queue, as far as is known.

    It moves none into one that is disabled (flux-queue(1)).
    """
    known = lead.queues.get(queue)
    return known is None or known.enabled


def _blocks_others(
    job: JobView, bursts: list[Burst], intake: JobTriage, lead: LeadView
) -> bool:
    """Tell whether the job, if Flux had it now, would wait for absent ranks."""
    if bursts:
        assert job.request is not None  # or nothing were made for it
        missing, _ = missing_nodes(job.request, bursts, lead)
        return bool(missing) or not all(is_up(burst) for burst in bursts)
    if not job.burstable:
        # Nothing is held that we are not to hold any more.
        return False
    assert job.request is not None  # or the verdict were UNREADABLE
    return wants_isolated(job) or not intake.can_ever_run_here(job.request)


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
            shown=job.urgency or (hold.shown if hold else 0),
            expired=hold.expired if hold else 0.0,
        )
        return True
    if hold.state is HoldState.HOLDING and tx.now - hold.since > ASK_AGAIN:
        tx.set_hold_state(job.id, HoldState.HOLDING)
        return True
    return False


def _release(tx: Transaction, job: JobView, settings: IntakeSettings) -> bool:
    """Record the intent to release a job; tell whether to ask for it now."""
    hold = tx.holds.get(job.id)
    if hold is None:
        return False
    late = hold.state is HoldState.RELEASING and tx.now - hold.since > ASK_AGAIN
    if hold.state in _PARKED or late:
        shown = settings.release_urgency or hold.urgency
        tx.holds[job.id] = msgspec.structs.replace(
            hold.then(HoldState.RELEASING, tx.now), shown=shown
        )
        return True
    return False


def _tell_unreleased(tx: Transaction, bursts: list[Burst], job: JobId) -> None:
    untold = [burst for burst in bursts if burst.times[job].released is None]
    _tell_bursts(tx, untold, "job-release", job)


def _tell_bursts(tx: Transaction, bursts: list[Burst], name: str, job: JobId) -> None:
    for burst in bursts:
        tx.record(burst.id, name, {"id": format_f58(job)})
