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
    Meaning,
    lacks_capacity,
    meaning,
    moved,
    provider_word,
    rank_count,
    ranks_of,
)
from burst.core.provider_health import Outcome, Verb
from burst.core.transaction import Draft
from burst.core.world import Call, World
from burst.model.burst import Burst, State
from burst.model.event import cut
from burst.model.hold import DEFAULT_URGENCY, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView, LeadView
from burst.model.ranks import format_idset

_STATE_OF = {Verb.PROVISION: State.PROVISION, Verb.REAP: State.REAP}
_WENT_WRONG = {
    Meaning.BROKE: "the provider reports a failure",
    Meaning.VANISHED: "the provider has nothing of it any more",
    Meaning.ENDED: "the provider is deleting it, and not on our word",
}


def sync(
    draft: Draft, world: World, settings: LimitSettings, same: Container[JobId] = ()
) -> None:
    """Write what the answers, the ranks and the jobs say into the draft.

    `same` are jobs that are as they were, and their holds: there is nothing to write
    of them.
    """
    for said in world.answered:
        held = provider_health.after_answer(
            draft.health_of(said.provider), said, settings, draft.now
        )
        draft.set_health(said.provider, held)
        if said.burst is not None and said.burst in draft.bursts:
            burst = draft.bursts[said.burst]
            _conclude(draft, burst, world.calls[burst.id], settings)
    for known in list(draft.bursts.values()):
        burst = _locate(draft, known, world) if known.live else known
        if burst.live and not burst.quarantined:
            _follow(draft, burst, world, settings)
    if world.lead is None:
        return
    for burst in list(draft.bursts.values()):
        if burst.lease.isolated and not burst.quarantined:
            # After its end, too: its job is still to be ended.
            _follow_jobs(draft, burst, world.lead)
        elif burst.live and not burst.quarantined:
            _follow_jobs(draft, burst, world.lead)
            _follow_use(draft, draft.bursts[burst.id], world.lead)
    _follow_holds(draft, world.lead.jobs, same)


def _locate(draft: Draft, burst: Burst, world: World) -> Burst:
    """Quarantine a burst that its provider cannot reach, for as long as that is so."""
    why = moved(burst.lease, world.places)
    if why and not burst.quarantined:
        draft.quarantine(burst.id, why)
    elif not why and burst.quarantined.startswith(MOVED):
        draft.note(burst.id, "acquit", {"note": "its provider is where it was made"})
    return draft.bursts[burst.id]


def _follow_holds(
    draft: Draft, jobs: Mapping[JobId, JobView], same: Container[JobId]
) -> None:
    for view in jobs.values():
        if view.held_at_submit and view.wish.urgency:
            _adopt_hold(draft, view)
    for job in [job for job in draft.holds if job not in same]:
        _follow_hold(draft, job, draft.holds[job], jobs.get(job))


def _conclude(draft: Draft, burst: Burst, call: Call, settings: LimitSettings) -> None:
    """Draw the conclusion for a burst from its provider's answer."""
    provides = call.verb is Verb.PROVISION
    if provides and call.outcome is Outcome.CAPACITY:
        _hold_against(draft, burst, settings, capacity=True)
    elif provides and call.outcome is Outcome.SPEC:
        known = draft.health_of(burst.lease.provider)
        held = provider_health.refuse_spec(
            known, burst.lease, call.note, settings, draft.now
        )
        draft.set_health(burst.lease.provider, held)
    if call.outcome in provider_health.WORKS or burst.quarantined:
        return
    if provides and call.outcome in provider_health.ENDS_BURST and burst.state in LIVE:
        draft.fail(burst.id, call.outcome.value, call.note)
    elif burst.state is _STATE_OF[call.verb] and not _said(burst, call):
        context = {"call": call.verb.value, "note": call.note, "attempt": call.attempts}
        draft.note(burst.id, "retry", context)


def _said(burst: Burst, call: Call) -> bool:
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


def _follow(draft: Draft, burst: Burst, world: World, settings: LimitSettings) -> None:
    """Take the burst through the states that the facts say it has reached."""
    if burst.lease.isolated:
        if isolated.follow(draft, burst, world):
            lacking = burst.state is State.PROVISION and lacks_capacity(burst, world)
            _hold_against(draft, burst, settings, capacity=lacking)
        return
    if world.lead is not None and burst.state is not State.NEW:
        new = world.lead.online & ranks_of(burst, world) - burst.came
        if new:
            draft.note(burst.id, "joined", {"ranks": format_idset(new)})
    while True:
        burst = draft.bursts[burst.id]
        what = meaning(
            burst.state, provider_word(burst, world), rank_count(burst, world)
        )
        if what is None:
            draft.quarantine(burst.id, "no rule for what is seen of it")
            return
        if not _happened(draft, burst, world, what):
            break
    after = draft.bursts[burst.id]
    if what in _WENT_WRONG and burst.state in {State.PROVISION, State.JOIN}:
        lacking = lacks_capacity(after, world)
        _hold_against(draft, after, settings, capacity=lacking)


def _happened(draft: Draft, burst: Burst, world: World, what: Meaning) -> bool:
    """Write the event of a meaning; tell whether the state may have changed by it."""
    ranks = format_idset(burst.lease.ranks)
    if what is Meaning.STARTED:
        after = draft.note(burst.id, "provision-finish", {})
        return not after.quarantined
    if what is Meaning.JOINED:
        draft.note(burst.id, "online", {"ranks": ranks})
        known = draft.health_of(burst.lease.provider)
        held = provider_health.restore(known, burst.lease)
        draft.set_health(burst.lease.provider, held)
        return True
    if what is Meaning.LOST and burst.lost_since is None:
        assert world.lead is not None
        gone = burst.expected - world.lead.online
        draft.note(burst.id, "lost", {"ranks": format_idset(gone)})
    if what is Meaning.WHOLE and burst.lost_since is not None:
        draft.note(burst.id, "back", {"ranks": ranks})
    if what in _WENT_WRONG:
        view = world.providers[burst.lease.provider]
        status = view.statuses.get(burst.id)
        lacking = lacks_capacity(burst, world)
        why = (status.why if status else "") or _WENT_WRONG[what]
        draft.fail(burst.id, "capacity" if lacking else "failed", why)
    return False


def _hold_against(
    draft: Draft, burst: Burst, settings: LimitSettings, *, capacity: bool
) -> None:
    """A burst that failed before it was online counts against its offer.

    For want of capacity it does for bursts of its size and larger ones only.
    """
    nodes = burst.lease.nodes if capacity else 0
    provider = burst.lease.provider
    known = draft.health_of(provider)
    held = provider_health.set_aside(
        known, burst.lease.offer, settings, draft.now, nodes
    )
    draft.set_health(provider, held)


def _follow_jobs(draft: Draft, burst: Burst, lead: LeadView) -> None:
    for job in sorted(burst.jobs):
        view = lead.jobs.get(job)
        context = {"id": format_f58(job)}
        ended = view is None or view.state is JobState.INACTIVE
        if view and _runs_elsewhere(view, burst):
            note = f"it runs on ranks {format_idset(view.ranks)}, which are others"
            draft.note(burst.id, "job-leave", {**context, "note": note})
            continue
        if view and view.t_start and job not in burst.started:
            draft.note(burst.id, "job-start", context, view.t_start)
        if ended:
            result = view.result if view else "unknown"
            at = view.t_finish if view else 0.0
            draft.note(burst.id, "job-finish", {**context, "result": result}, at)


def _runs_elsewhere(job: JobView, burst: Burst) -> bool:
    """Tell whether the job has nodes, and none of them are the burst's."""
    return bool(job.ranks) and not (
        burst.lease.isolated or job.ranks.intersection(burst.lease.ranks)
    )


def _follow_use(draft: Draft, burst: Burst, lead: LeadView) -> None:
    """Note since when nothing runs on an online burst that no job counts on."""
    if burst.state is not State.ONLINE:
        return
    used = not lead.allocated.isdisjoint(burst.lease.ranks)
    if used and burst.unused_since is not None:
        draft.note(burst.id, "busy", {})
    if not used and not burst.jobs and burst.unused_since is None:
        draft.note(burst.id, "idle", {})


def _adopt_hold(draft: Draft, view: JobView) -> None:
    """Take a job that was submitted held for us as held by us.

    The urgency that it asks for is its user's word, who may ask for the default and
    for less, flux-submit(1). That it waits for us is his word, too, and holds for how
    he submitted it: what somebody held later is not ours to release.
    """
    if view.state is JobState.SCHED and view.id not in draft.holds:
        urgency = min(view.wish.urgency, DEFAULT_URGENCY)
        draft.holds[view.id] = Hold(
            urgency=urgency, state=HoldState.HELD, since=draft.now
        )


def _follow_hold(draft: Draft, job: JobId, hold: Hold, view: JobView | None) -> None:
    """Learn from the urgency whether what we did took, or the user had his say."""
    if view is None or view.state is JobState.INACTIVE:
        del draft.holds[job]
        return
    if view.state in (JobState.RUN, JobState.CLEANUP):
        if hold.state is not HoldState.RELEASED:
            draft.move_hold(job, HoldState.RELEASED)
        return
    held = view.urgency == 0
    if hold.state is HoldState.HOLDING and held:
        draft.move_hold(job, HoldState.HELD)
    elif hold.state is HoldState.RELEASING and not held:
        draft.move_hold(job, HoldState.RELEASED)
        _learn_urgency(draft, job, view.urgency)
    elif _users_doing(hold, view.urgency):
        draft.move_hold(job, HoldState.OBEYED)
    elif hold.state is HoldState.RELEASED:
        _learn_urgency(draft, job, view.urgency)


def _learn_urgency(draft: Draft, job: JobId, urgency: int) -> None:
    """Keep what the user has made of the urgency of a job that we released.

    It is what he gets back if the job has to be held again.
    """
    hold = draft.holds[job]
    if hold.shown and urgency != hold.shown:
        draft.holds[job] = msgspec.structs.replace(hold, urgency=urgency, shown=urgency)


def _users_doing(hold: Hold, urgency: int) -> bool:
    """Tell whether the urgency is neither what we found nor what we set."""
    if hold.state is HoldState.HOLDING:
        return urgency not in (hold.urgency, hold.shown)
    if hold.state is HoldState.HELD:
        return urgency != 0
    return hold.state is HoldState.RELEASED and urgency == 0
