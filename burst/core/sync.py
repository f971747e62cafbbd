# SPDX-License-Identifier: MIT
"""The passive half of a tick: record what happened. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from burst.config import LimitSettings
from burst.core import isolated, provider_health
from burst.core.lifecycle import LIVE
from burst.core.observation import (
    MOVED,
    Observation,
    RanksOnline,
    is_made,
    lacks_capacity,
    look_up,
    provider_phase,
    rank_count,
    ranks_of,
    why_out_of_reach,
)
from burst.core.provider_health import Outcome, Verb
from burst.core.records import Transaction
from burst.core.world import LastCall, World
from burst.model.burst import Burst, State
from burst.model.event import cut
from burst.model.hold import DEFAULT_URGENCY, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView, LeadView
from burst.model.ranks import format_idset

_STATE_OF = {Verb.PROVISION: State.PROVISION, Verb.REAP: State.REAP}
_WENT_WRONG = {
    Observation.BROKE: "the provider reports a failure",
    Observation.VANISHED: "the provider has nothing of it any more",
    Observation.ENDED: "the provider is deleting it, and not on our word",
}


def sync(
    tx: Transaction,
    world: World,
    settings: LimitSettings,
    same: Container[JobId] = (),
) -> None:
    """Write what the answers, the ranks and the jobs say into the transaction.

    `same` are jobs that are as they were, and their holds: there is nothing to write
    of them.
    """
    for said in world.answered:
        held = provider_health.after_answer(
            tx.health_of(said.provider), said, settings, tx.now
        )
        tx.set_health(said.provider, held)
        if said.burst is not None and said.burst in tx.bursts:
            burst = tx.bursts[said.burst]
            _conclude(tx, burst, world.calls[burst.id], settings)
    for known in list(tx.bursts.values()):
        burst = _locate(tx, known, world) if known.live else known
        if burst.live and not burst.quarantined:
            _follow(tx, burst, world, settings)
    if world.lead is None:
        return
    for burst in list(tx.bursts.values()):
        if burst.lease.isolated and not burst.quarantined:
            # After its end, too: its job is still to be ended.
            _follow_jobs(tx, burst, world.lead)
        elif burst.live and not burst.quarantined:
            _follow_jobs(tx, burst, world.lead)
            _follow_use(tx, tx.bursts[burst.id], world.lead)
    _follow_holds(tx, world.lead.jobs, same)


def _locate(tx: Transaction, burst: Burst, world: World) -> Burst:
    """Quarantine a burst that its provider cannot reach, for as long as that is so."""
    why = why_out_of_reach(burst.lease, world.places)
    if why and not burst.quarantined:
        tx.quarantine(burst.id, why)
    elif not why and burst.quarantined.startswith(MOVED):
        tx.record(burst.id, "acquit", {"note": "its provider is where it was made"})
    return tx.bursts[burst.id]


def _follow_holds(
    tx: Transaction, jobs: Mapping[JobId, JobView], same: Container[JobId]
) -> None:
    for view in jobs.values():
        if view.held_at_submit and view.preferences.urgency:
            _adopt_hold(tx, view)
    for job in [job for job in tx.holds if job not in same]:
        _follow_hold(tx, job, tx.holds[job], jobs.get(job))


def _conclude(
    tx: Transaction, burst: Burst, call: LastCall, settings: LimitSettings
) -> None:
    """Draw the conclusion for a burst from its provider's answer."""
    provides = call.verb is Verb.PROVISION
    if provides and call.outcome is Outcome.CAPACITY:
        _hold_against(tx, burst, settings, capacity=True)
    elif provides and call.outcome is Outcome.SPEC:
        known = tx.health_of(burst.lease.provider)
        held = provider_health.refuse_spec(
            known, burst.lease, call.note, settings, tx.now
        )
        tx.set_health(burst.lease.provider, held)
    if call.outcome in provider_health.WORKS or burst.quarantined:
        return
    if provides and call.outcome in provider_health.ENDS_BURST and burst.state in LIVE:
        tx.fail(burst.id, call.outcome.value, call.note)
    elif burst.state is _STATE_OF[call.verb] and not _said(burst, call):
        context = {"call": call.verb.value, "note": call.note, "attempt": call.attempts}
        tx.record(burst.id, "retry", context)


def _said(burst: Burst, call: LastCall) -> bool:
    """Tell whether it was written that the provider asks for patience, and for what.

    A cluster that is being made is asked for every few seconds for minutes, and each
    event is a line in the log and a write to the store.
    """
    return any(
        event.name == "retry"
        and event.timestamp >= burst.since
        and event.context.get("call") == call.verb.value
        and event.context.get("note") == cut(call.note)
        for event in burst.events
    )


def _follow(
    tx: Transaction, burst: Burst, world: World, settings: LimitSettings
) -> None:
    """Take the burst through the states that the facts say it has reached."""
    if burst.lease.isolated:
        if isolated.follow(tx, burst, world):
            lacking = burst.state is State.PROVISION and lacks_capacity(burst, world)
            _hold_against(tx, burst, settings, capacity=lacking)
        return
    if world.lead is not None and burst.state is not State.NEW:
        new = world.lead.online & ranks_of(burst, world) - burst.joined_ranks
        if new:
            tx.record(burst.id, "joined", {"ranks": format_idset(new)})
    while True:
        burst = tx.bursts[burst.id]
        count = rank_count(burst, world)
        what = look_up(burst.state, provider_phase(burst, world), count)
        if what is None:
            tx.quarantine(burst.id, "no rule for what is seen of it")
            return
        all_up = count is RanksOnline.ALL
        if what is Observation.STARTED and not (all_up or is_made(burst, world)):
            # What of it is up may be all that was made before a call failed.
            break
        if not _happened(tx, burst, world, what):
            break
    after = tx.bursts[burst.id]
    if what in _WENT_WRONG and burst.state in {State.PROVISION, State.JOIN}:
        lacking = lacks_capacity(after, world)
        _hold_against(tx, after, settings, capacity=lacking)


def _happened(tx: Transaction, burst: Burst, world: World, what: Observation) -> bool:
    """Write the event of a meaning; tell whether the state may have changed by it."""
    ranks = format_idset(burst.lease.ranks)
    if what is Observation.STARTED:
        after = tx.record(burst.id, "provision-finish", {})
        return not after.quarantined
    if what is Observation.JOINED:
        tx.record(burst.id, "online", {"ranks": ranks})
        known = tx.health_of(burst.lease.provider)
        held = provider_health.forgive(known, burst.lease)
        tx.set_health(burst.lease.provider, held)
        return True
    if what is Observation.LOST and burst.lost_since is None:
        assert world.lead is not None
        gone = burst.expected - world.lead.online
        tx.record(burst.id, "lost", {"ranks": format_idset(gone)})
    if what is Observation.WHOLE and burst.lost_since is not None:
        tx.record(burst.id, "back", {"ranks": ranks})
    if what in _WENT_WRONG:
        view = world.providers[burst.lease.provider]
        status = view.statuses.get(burst.id)
        lacking = lacks_capacity(burst, world)
        why = (status.why if status else "") or _WENT_WRONG[what]
        tx.fail(burst.id, "capacity" if lacking else "failed", why)
    return False


def _hold_against(
    tx: Transaction, burst: Burst, settings: LimitSettings, *, capacity: bool
) -> None:
    """A burst that failed before it was online counts against its offer.

    For want of capacity it does for bursts of its size and larger ones only.
    """
    nodes = burst.lease.nodes if capacity else 0
    provider = burst.lease.provider
    known = tx.health_of(provider)
    held = provider_health.cool_down(known, burst.lease.offer, settings, tx.now, nodes)
    tx.set_health(provider, held)


def _follow_jobs(tx: Transaction, burst: Burst, lead: LeadView) -> None:
    for job in sorted(burst.jobs):
        view = lead.jobs.get(job)
        context = {"id": format_f58(job)}
        ended = view is None or view.state is JobState.INACTIVE
        if view and _runs_elsewhere(view, burst):
            note = f"it runs on ranks {format_idset(view.ranks)}, which are others"
            tx.record(burst.id, "job-leave", {**context, "note": note})
            continue
        if view and view.t_start and job not in burst.started:
            tx.record(burst.id, "job-start", context, view.t_start)
        if ended:
            result = view.result if view else "unknown"
            at = view.t_finish if view else 0.0
            tx.record(burst.id, "job-finish", {**context, "result": result}, at)


def _runs_elsewhere(job: JobView, burst: Burst) -> bool:
    """Tell whether the job has nodes, and none of them are the burst's."""
    return bool(job.ranks) and not (
        burst.lease.isolated or job.ranks.intersection(burst.lease.ranks)
    )


def _follow_use(tx: Transaction, burst: Burst, lead: LeadView) -> None:
    """Note since when nothing runs on an online burst that no job counts on."""
    if burst.state is not State.ONLINE:
        return
    used = not lead.allocated.isdisjoint(burst.lease.ranks)
    if used and burst.unused_since is not None:
        tx.record(burst.id, "busy", {})
    if not used and not burst.jobs and burst.unused_since is None:
        tx.record(burst.id, "idle", {})


def _adopt_hold(tx: Transaction, view: JobView) -> None:
    """Take a job that was submitted held for us as held by us.

    The urgency that it asks for is its user's word, who may ask for the default and
    for less, flux-submit(1). That it waits for us is his word, too, and holds for how
    he submitted it: what somebody held later is not ours to release.
    """
    if view.state is JobState.SCHED and view.id not in tx.holds:
        urgency = min(view.preferences.urgency, DEFAULT_URGENCY)
        tx.holds[view.id] = Hold(urgency=urgency, state=HoldState.HELD, since=tx.now)


def _follow_hold(tx: Transaction, job: JobId, hold: Hold, view: JobView | None) -> None:
    """Learn from the urgency whether what we did took, or the user had his say."""
    if view is None or view.state is JobState.INACTIVE:
        del tx.holds[job]
        return
    if view.state in (JobState.RUN, JobState.CLEANUP):
        if hold.state is not HoldState.RELEASED:
            tx.set_hold_state(job, HoldState.RELEASED)
        return
    held = view.urgency == 0
    if hold.state is HoldState.HOLDING and held:
        tx.set_hold_state(job, HoldState.HELD)
    elif hold.state is HoldState.RELEASING and not held:
        tx.set_hold_state(job, HoldState.RELEASED)
        _learn_urgency(tx, job, view.urgency)
    elif _users_doing(hold, view.urgency):
        tx.set_hold_state(job, HoldState.OBEYED)
    elif hold.state is HoldState.RELEASED:
        _learn_urgency(tx, job, view.urgency)


def _learn_urgency(tx: Transaction, job: JobId, urgency: int) -> None:
    """Keep what the user has made of the urgency of a job that we released.

    It is what he gets back if the job has to be held again.
    """
    hold = tx.holds[job]
    if hold.shown and urgency != hold.shown:
        tx.holds[job] = msgspec.structs.replace(hold, urgency=urgency, shown=urgency)


def _users_doing(hold: Hold, urgency: int) -> bool:
    """Tell whether the urgency is neither what we found nor what we set."""
    if hold.state is HoldState.HOLDING:
        return urgency not in (hold.urgency, hold.shown)
    if hold.state is HoldState.HELD:
        return urgency != 0
    return hold.state is HoldState.RELEASED and urgency == 0
