# SPDX-License-Identifier: MIT
"""How isolated bursts behave where they differ from bursts that join the lead.

This covers what is done with a burst and with its job, and the deadlines of both.
"""

from __future__ import annotations

import math

from burst.config import Settings
from burst.core.isolated import decision
from burst.core.isolated.observation import instance_phase, look_up
from burst.core.job_events import record_job_events
from burst.core.losses import record_lost_pods, record_reclaim
from burst.core.observation import (
    FAILURES,
    Observation,
    failure_kind,
    failure_note,
    is_in_reach,
    provider_message,
    provider_phase,
    reported_message,
    status_of,
)
from burst.core.provider_calls import refused_call, report_overdue
from burst.core.provider_health import Outcome
from burst.core.records import ASSIGNABLE, UNNEEDED, RecordChanges, Records, Transaction
from burst.core.world import World
from burst.model.burst import CAPACITY, NOT_HELD, REFUSED, SPEC, Burst, State
from burst.model.decision import Decision
from burst.model.exit_status import shell_status
from burst.model.fsd import format_fsd
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, PENDING, JobState, JobView
from burst.provider import BurstStatus

# Flux may be giving nodes to a job that was just held; wait so long, in seconds.
SETTLED = 1.0
# A program with a time limit ends by itself, but it began a little after its burst was
# online: wait so much longer for its end, in seconds.
LATE = 60.0
# How often, in seconds, it is recorded that a deadline has passed and the provider
# cannot be read. A daemon that was just started has not read it yet.
_REPORTED_EVERY_S = 600.0


class IsolatedBehaviour:
    """What isolated bursts do; see `burst.core.behaviour`."""

    def record_states(self, tx: Transaction, burst: Burst) -> None:
        """Record the states that a live burst has reached, by what was read."""
        before = burst = record_lost_pods(tx, record_reclaim(tx, burst))
        status, phase = status_of(burst, tx.world), provider_phase(burst, tx.world)
        while True:
            what = look_up(burst.state, phase, instance_phase(status))
            if what is Observation.STARTED:
                burst = tx.record(burst.id, "provision-finish", {})
            elif what is Observation.ONLINE:
                burst = tx.record(burst.id, "online", {"ranks": ""})
                tx.forgive(burst)
            else:
                break
        if what is None:
            why = "no rule covers what its record and its provider show"
            tx.quarantine(burst.id, why)
        elif what is Observation.FINISHED:
            assert status is not None
            _record_result(tx, burst, status)
        elif what in FAILURES:
            # Once all nodes were started the job may have run: no lack of capacity.
            kind = failure_kind(burst, tx.world)
            if kind == CAPACITY and before.state is not State.PROVISION:
                kind = "failed"
            # A rule of the place forbids its nodes, not its program: another offer may
            # run its job. With an image of its own the rule may forbid only that.
            starts = before.state is State.PROVISION and burst.jobs
            if kind == SPEC and starts and not burst.lease.image:
                kind = REFUSED
            note = failure_note(burst, tx.world, what)
            tx.fail_as_seen(burst, note, kind)

    def record_jobs(self, tx: Transaction, burst: Burst) -> None:
        """Record what became of its job, also after the burst has ended.

        A job that did not run in a burst that ended runs elsewhere.
        """
        if burst.may_have_run or burst.state not in (State.REAP, State.INACTIVE):
            record_job_events(tx, burst)

    def act(self, tx: Transaction, burst: Burst) -> None:
        """Provision a burst once its job is held, end it in time, then end its job."""
        if tx.world.lead is None:
            return
        burst = _watch_job(tx, burst)
        if burst.state is State.NEW:
            _provision(tx, burst)
        elif burst.state is State.PROVISION:
            self._end_made(tx, burst)
        elif burst.state is State.ONLINE:
            self._run(tx, burst)

    def _end_made(self, tx: Transaction, burst: Burst) -> None:
        """End a burst that its provider refuses, and that an earlier call has made.

        Its program may begin until it is deleted, so its job must not run again.
        """
        call = refused_call(burst, tx.world)
        if call is None or call.first or call.outcome is not Outcome.REFUSED:
            return
        shown = status_of(burst, tx.world) is not None
        if shown and self.may_end_late(tx, burst, call.done_at):
            tx.fail(burst.id, "failed", call.note)

    def _run(self, tx: Transaction, burst: Burst) -> None:
        """End a burst that no job needs, that is late, or whose lease is over."""
        lease, until = burst.lease, run_until(burst, tx.settings)
        ends = min(until, lease.end or math.inf)
        if lease.userids and not burst.jobs:
            tx.fail(burst.id, "canceled", UNNEEDED)
        elif tx.now <= ends or not self.may_end_late(tx, burst, ends):
            return
        elif tx.now > until:
            took = format_fsd(round(tx.now - burst.since))
            tx.fail(burst.id, "timeout", f"its program did not end within {took}")
        else:
            tx.fail(burst.id, "timeout", "its lease is over")

    def may_end_late(self, tx: Transaction, burst: Burst, deadline: float) -> bool:
        """Tell whether a deadline that has passed may end a burst.

        It may not before the provider was read after it, which shows whether the
        program has begun or ended in time: the result would be lost, and it cannot be
        run again. So it is with the time at which `provision` was refused, unless that
        was the first call for the burst: an earlier one may have made it. If the
        provider does not answer, nothing could be deleted there either. A person can
        end the burst.
        """
        name = burst.lease.provider
        view = tx.world.providers.get(name)
        if view is not None and not view.trouble and view.read_at > deadline:
            return True
        why = "it is not enabled" if view is None else view.trouble or "no answer yet"
        note = f"it is not ended before provider {name} was read again"
        report_overdue(tx, burst, _REPORTED_EVERY_S, f"{note}: {why}", deadline)
        return False

    def end_late_join(self, tx: Transaction, burst: Burst) -> None:
        """Fail a burst whose instance did not come up."""
        limit = format_fsd(tx.settings.deadlines.join)
        why = provider_message(burst, tx.world) or "its provider does not say why"
        note = f"its own instance was not up within {limit}: {why}"
        tx.fail_late(burst, note)

    def take_down_online(self, tx: RecordChanges, burst: Burst, note: str) -> None:
        """End a burst at once: the lead knows no ranks of it that could be drained."""
        tx.fail(burst.id, "canceled", note)

    def next_deadline(self, burst: Burst, settings: Settings, *_: object) -> float:
        """Return when its program or its lease ends; math.inf if neither does."""
        if burst.state is not State.ONLINE:
            return math.inf
        return min(run_until(burst, settings), burst.lease.end or math.inf)

    def nodes_up(self, burst: Burst, _: World, /) -> int | None:
        """Return all of its nodes once its instance is up."""
        was = burst.first("online") is not None
        up = burst.state is State.ONLINE if burst.live else was
        return burst.lease.nodes if up else 0

    def decide(self, burst: Burst, world: World, _: str, /) -> Decision:
        """Return the decision on the job that it runs."""
        message = provider_message(burst, world)
        reported = reported_message(burst, world)
        return decision.decide(
            burst,
            f": {message}" if message else "",
            f": {reported}" if reported else "",
        )


def _record_result(tx: Transaction, burst: Burst, status: BurstStatus) -> None:
    """Record exit status and output at once: a reaped burst has neither."""
    assert status.instance is not None
    assert status.instance.exit_status is not None
    tx.forgive(burst)
    code = shell_status(status.instance.exit_status)
    tx.outputs[burst.id] = status.instance.output
    note = decision.finish_words(burst, code)
    tx.record(burst.id, "finish", {"status": code, "note": note})


def next_provision(records: Records, now: float) -> float:
    """Return when the next held job has been held long enough; math.inf if none."""
    held = [
        records.holds[job].since
        for burst in records.live
        if burst.state is State.NEW and burst.lease.isolated_job is not None
        for job in burst.jobs
        if job in records.holds and records.holds[job].state is HoldState.HELD
    ]
    times = [since + SETTLED for since in held]
    return min((time for time in times if time > now), default=math.inf)


def _watch_job(tx: Transaction, burst: Burst) -> Burst:
    """End the job of a burst that ended; end a burst whose job Flux can start."""
    if burst.may_have_run:
        for job in sorted(burst.jobs):
            view = tx.lead.jobs.get(job)
            if view and (view.state in PENDING or _is_half_ended(burst, view)):
                tx.actions.append(decision.end_job(tx, burst, job))
        return burst
    on_its_way = burst.state in ASSIGNABLE
    if on_its_way and any(_may_start_here(tx, job) for job in burst.jobs):
        note = "its job is not held any more, so this burst does not run it"
        return tx.fail(burst.id, NOT_HELD, note)
    return burst


def _is_half_ended(burst: Burst, view: JobView) -> bool:
    """Tell whether a crash of the lead interrupted the end of a job with its result.

    The job has left the state SCHED then, and has no ranks; a job that Flux started has
    some.
    """
    active = view.state in ALLOCATED
    return active and not view.ranks and burst.exit_status is not None


def _provision(tx: Transaction, burst: Burst) -> None:
    """Have the provider make a burst, once nothing else can run its job."""
    lead, limit = tx.lead, tx.settings.provision_limit(burst.lease.provider)
    can_ask = is_in_reach(burst.lease, tx.world) and not tx.world.rents_nothing
    if not burst.jobs:
        tx.fail(burst.id, "canceled", UNNEEDED)
    elif any(_has_new_limit(burst, lead.jobs.get(job)) for job in burst.jobs):
        # The burst ends its program at the time limit that is in the lease.
        tx.fail(burst.id, NOT_HELD, "its job has another time limit now")
    elif can_ask and all(_is_surely_held(tx, lead.jobs.get(j)) for j in burst.jobs):
        tx.start_provision(burst.id)
    elif tx.now - burst.since > limit:
        # The provider was not called, so the job may run in another burst or here.
        what = "its job could not be held"
        if not can_ask:
            what = f"provider {burst.lease.provider} could not be called"
        tx.fail(burst.id, NOT_HELD, f"{what} within {format_fsd(limit)}")


def run_until(burst: Burst, settings: Settings) -> float:
    """Return when an online burst's program must have ended; math.inf for never."""
    isolated = burst.lease.isolated
    assert isolated is not None
    if not isolated.ends:
        return math.inf
    return burst.since + (isolated.duration or settings.deadlines.run) + LATE


def _may_start_here(tx: Transaction, job: JobId) -> bool:
    """Tell whether a job may start here, by its user's action or by Flux's."""
    hold, view = tx.holds.get(job), tx.lead.jobs.get(job)
    if hold is not None and hold.state in (HoldState.TAKEN_BACK, HoldState.RELEASED):
        return True
    return view is not None and view.state in ALLOCATED


def _has_new_limit(burst: Burst, view: JobView | None) -> bool:
    """Tell whether the job's time limit differs from the one it was placed with."""
    isolated = burst.lease.isolated
    assert isolated is not None
    return view is not None and view.duration != isolated.duration


def _is_surely_held(tx: Transaction, view: JobView | None) -> bool:
    """Tell whether a job has been held for so long that no allocation is on its way."""
    hold = tx.holds.get(view.id) if view else None
    return (
        view is not None
        and hold is not None
        and (view.state, view.urgency) == (JobState.SCHED, 0)
        and hold.state is HoldState.HELD
        and tx.now - hold.since >= SETTLED
    )
