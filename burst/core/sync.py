# SPDX-License-Identifier: MIT
"""The first part of a tick: record what happened. Nothing is decided here.

Deadlines are postponed by the time in which the lead was not read, as it hung, or the
daemon was stopped (SIGSTOP). Meanwhile followers could not join and jobs could not
start, or nobody saw it. What depends only on the clock, such as the end of a lease,
does not change.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping

import msgspec

from burst.core import cooldowns, provider_health
from burst.core.behaviour import behaviour_of
from burst.core.event_changes import OUT_OF_REACH
from burst.core.job_events import assign_started_jobs
from burst.core.jobs.refusal_cache import RefusalCache
from burst.core.observation import why_out_of_reach
from burst.core.plan.shortfall import Shortfall
from burst.core.provider_calls import is_gone
from burst.core.provider_health import Outcome, Verb
from burst.core.records import RecordChanges, Records, Transaction
from burst.core.repeats import record_lost_jobs
from burst.core.resizing import fail_growth
from burst.core.world import LastCall
from burst.model.burst import Burst, State
from burst.model.event import cut
from burst.model.fsd import format_fsd
from burst.model.hold import DEFAULT_URGENCY, Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, JobState, JobView, LeadView

_STATE_OF = {Verb.PROVISION: State.PROVISION, Verb.REAP: State.REAP}


def sync(tx: Transaction, same: Container[JobId] = ()) -> None:
    """Record what happened, according to providers' answers, ranks and jobs.

    `same` are jobs that have not changed, nor have their holds: nothing is recorded
    about these.
    """
    postpone(tx, tx.world.unread)
    for name in tx.health.keys() & tx.settings.providers.keys():
        table = tx.settings.providers[name]
        tx.set_health(name, cooldowns.forget_other_table(tx.health[name], table))
    take_answers(tx)
    for known in list(tx.bursts.values()):
        burst = _check_reach(tx, known) if known.live else known
        if burst.live and not burst.quarantined:
            behaviour_of(burst).record_states(tx, burst)
    if tx.world.lead is None:
        return
    assign_started_jobs(tx)
    record_lost_jobs(tx)
    for burst in list(tx.bursts.values()):
        if not burst.quarantined:
            behaviour_of(burst).record_jobs(tx, burst)
    _record_holds(tx, tx.lead.jobs, same)


def with_holds(records: Records, lead: LeadView, now: float) -> Records:
    """Return the records with the holds as a daemon records them when it starts.

    That is for a lead without a daemon: jobs were submitted held, or ended, meanwhile.
    """
    tx = RecordChanges(records, now)
    _record_holds(tx, lead.jobs, ())
    return tx.result()


def take_answers(tx: Transaction) -> None:
    """Record what the answers of providers mean for them and for their bursts."""
    for answer in tx.world.answered:
        health = provider_health.after_answer(
            tx.health_of(answer.provider), answer, tx.settings.limits, tx.now
        )
        tx.set_health(answer.provider, health)
        if answer.burst is not None and answer.burst in tx.bursts:
            burst = tx.bursts[answer.burst]
            _apply_answer(tx, burst)


def _check_reach(tx: Transaction, burst: Burst) -> Burst:
    """Quarantine a burst while its provider cannot reach it, unless it is gone."""
    why = why_out_of_reach(burst.lease, tx.world.places)
    if why and not burst.quarantined and not is_gone(burst, tx.world):
        tx.quarantine(burst.id, why, OUT_OF_REACH)
    elif not why and burst.out_of_reach:
        note = "its provider is set to the place where it was made"
        tx.record(burst.id, "unquarantine", {"note": note})
    return tx.bursts[burst.id]


def _record_holds(
    tx: RecordChanges, jobs: Mapping[JobId, JobView], same: Container[JobId]
) -> None:
    for view in jobs.values():
        if view.held_at_submit and view.preferences.urgency:
            _adopt_hold(tx, view)
    for job in [job for job in tx.holds if job not in same]:
        _record_hold(tx, job, tx.holds[job], jobs.get(job))


def _apply_answer(tx: Transaction, burst: Burst) -> None:
    """Record what the provider's answer means for a burst."""
    call = tx.world.calls[burst.id]
    if call.verb is Verb.RESIZE:
        _apply_resize(tx, burst, call)
        return
    is_provision = call.verb is Verb.PROVISION
    if is_provision and call.outcome is Outcome.CAPACITY:
        tx.cool_down(burst, call.note, burst.lease.nodes, call.offers)
    elif is_provision and call.outcome is Outcome.SPEC:
        tx.refuse_spec(burst, call.note, by_rule=call.by_rule)
    if call.outcome in provider_health.WORKS or burst.quarantined:
        return
    if is_provision and call.outcome in provider_health.ENDS_BURST:
        return  # what the provider shows is recorded first; see `burst_actions`
    if burst.state is _STATE_OF[call.verb]:
        _record_retry(tx, burst, call)


def _apply_resize(tx: Transaction, burst: Burst, call: LastCall) -> None:
    """Record what the answer to `resize` means for a burst.

    A growth that the provider cannot make is undone; all else is tried again.
    """
    resize = burst.resize
    if call.outcome is Outcome.OK or burst.quarantined or resize is None:
        return
    if call.nodes != resize.nodes:
        return  # the call was for another size
    final = call.outcome in (*provider_health.ENDS_BURST, Outcome.NOT_FOUND)
    if final and burst.coming:
        fail_growth(tx, burst, call.note)
    else:
        _record_retry(tx, burst, call)


def _record_retry(tx: Transaction, burst: Burst, call: LastCall) -> None:
    """Record that a call is repeated, and why, unless that is on record already.

    `provision` is called every few seconds while a cluster is made, which takes
    minutes; and each event is a line in the log and a write to the store.
    """
    if not any(
        event.name == "retry"
        and event.timestamp >= burst.since
        and event.context.get("call") == call.verb.value
        and event.context.get("note") == cut(call.note)
        for event in burst.events
    ):
        context = {"call": call.verb.value, "note": call.note, "attempt": call.attempts}
        tx.record(burst.id, "retry", context)


def _adopt_hold(tx: RecordChanges, view: JobView) -> None:
    """Record a job that `flux submit --burst` submitted held as held by the daemon.

    When it is released, it gets the urgency that its user asked for, at most the
    default (flux-submit(1)). A job that somebody held after its submission is not
    recorded, and so not released.
    """
    if view.state is JobState.SCHED and view.id not in tx.holds:
        urgency = min(view.preferences.urgency, DEFAULT_URGENCY)
        tx.holds[view.id] = Hold(urgency=urgency, state=HoldState.HELD, since=tx.now)


def _record_hold(
    tx: RecordChanges, job: JobId, hold: Hold, view: JobView | None
) -> None:
    """Record whether a hold or release took effect, or the user changed the urgency."""
    if view is None or view.state is JobState.INACTIVE:
        del tx.holds[job]
        return
    if view.state in ALLOCATED:
        if hold.state is not HoldState.RELEASED:
            tx.set_hold_state(job, HoldState.RELEASED)
        return
    held = view.urgency == 0
    if hold.state is HoldState.HOLDING and held:
        tx.set_hold_state(job, HoldState.HELD)
    elif hold.state is HoldState.RELEASING and not held:
        tx.set_hold_state(job, HoldState.RELEASED)
        _learn_urgency(tx, job, view.urgency)
    elif _is_changed_by_user(hold, view.urgency):
        tx.set_hold_state(job, HoldState.TAKEN_BACK)
    elif hold.state is HoldState.RELEASED:
        _learn_urgency(tx, job, view.urgency)


def _learn_urgency(tx: RecordChanges, job: JobId, urgency: int) -> None:
    """Keep the urgency that the user gave to a job that the daemon released.

    The job gets it back if it has to be held again.
    """
    hold = tx.holds[job]
    if not hold.may_show(urgency, tx.now):
        tx.holds[job] = msgspec.structs.replace(
            hold, urgency=urgency, expected_urgency=urgency, raised_to=0, by_user=True
        )


def _is_changed_by_user(hold: Hold, urgency: int) -> bool:
    """Tell whether an urgency can only have been set by the user."""
    if hold.state is HoldState.HOLDING:
        return urgency not in (hold.urgency, hold.expected_urgency)
    if hold.state is HoldState.HELD:
        return urgency != 0
    return hold.state is HoldState.RELEASED and urgency == 0


def postpone(tx: RecordChanges, seconds: float) -> None:
    """Move the start of each wait by the seconds in which the lead was not read.

    Nothing is changed if the number of seconds is not known (infinity).
    """
    if not 0 < seconds < math.inf:
        return
    for burst in tx.live:
        if not burst.quarantined:
            tx.record(burst.id, "unread", _context(burst, seconds, tx.now))
    for job, hold in list(tx.holds.items()):
        letting = hold.letting and min(hold.letting + seconds, tx.now)
        since = min(hold.since + seconds, tx.now)
        tx.holds[job] = msgspec.structs.replace(hold, since=since, letting=letting)


def postponed(cache: RefusalCache, seconds: float, now: float) -> RefusalCache:
    """Return the last tick's cache, with times moved as by `postpone`."""
    if not 0 < seconds < math.inf:
        return cache
    parts = {
        burst: msgspec.structs.replace(part, since=min(part.since + seconds, now))
        for burst, part in cache.idle_parts.items()
    }
    return msgspec.structs.replace(
        cache,
        idle_parts=parts,
        shortfalls=_later(cache.shortfalls, seconds, now),
    )


def _later(
    known: Mapping[JobId, Shortfall], seconds: float, now: float
) -> dict[JobId, Shortfall]:
    return {
        job: each
        if each.since is None
        else msgspec.structs.replace(each, since=min(each.since + seconds, now))
        for job, each in known.items()
    }


def _context(burst: Burst, seconds: float, now: float) -> dict[str, object]:
    """Return the new begin of each wait of a burst, as the context of an event.

    The context has the resulting times, not the changes, so that the last of several
    such events yields the same burst as all of them.
    """
    resize = burst.resize
    times = {
        "since_at": burst.since,
        "unused_at": burst.unused_since,
        "lost_at": burst.lost_since,
        "resize_at": resize.since if resize else None,
        "called_at": resize.called if resize else None,
    }
    later = {
        name: min(time + seconds, now)
        for name, time in times.items()
        if time is not None
    }
    what = f"the lead was not read for {format_fsd(round(seconds))}"
    return {**later, "note": f"{what}; deadlines were paused meanwhile"}
