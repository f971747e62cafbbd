# SPDX-License-Identifier: MIT
"""What happened to a burst, and when: the answer to `burst explain BURST`.

Each event of burst.core.lifecycle has one sentence here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from burst.config import Settings
from burst.core.burst_actions import next_deadline
from burst.core.cost import cost
from burst.core.lifecycle import EDGES, UNDER_WAY
from burst.core.observation import is_enabled, why_out_of_reach
from burst.core.records import RecordsView
from burst.core.resizing import growth_end
from burst.core.standing import stands
from burst.core.world import World
from burst.model.burst import Burst, JobTimes, State
from burst.model.decision import filled, time_after
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.next_step import (
    BURST_STEPS,
    GROWS,
    LOST,
    OUT_OF_REACH,
    PROGRAM,
    QUARANTINED,
    STANDS,
    STAYS,
    UNREAD,
    Actor,
    NextStep,
)
from burst.model.ranks import format_hostlist, format_idset

SENTENCES = {
    "submit": "it was planned",
    "provision-start": "its provider is called to make it",
    "provision-finish": "all its followers were started",
    "assign": "further jobs were assigned to it",
    "joined": "{ranks!i} joined the lead",
    "online": "it is online, with {ranks!i}",
    "lost": "it lost {ranks!i}: {note}",
    "back": "all ranks are back",
    "reclaimed": "{note}",
    "busy": "something runs on it again",
    "idle": "nothing runs on it, and no job is assigned to it",
    "job-hold": "job {id} is held until the nodes are there",
    "job-release": "job {id} is released",
    "job-start": "job {id} runs",
    "job-leave": "job {id} does not need it any more: {note}",
    "job-finish": "job {id} ended: {result}",
    "retry": "the call to its provider failed and is repeated: {note}",
    "drain": "no new job may start on it: {note}",
    "rank-drain": "no new job may start on {ranks!i}",
    "housekeeping-kill": "housekeeping on {ranks!i} is ended: {note}",
    "drained": "nothing runs on it any more; its provider is called to delete it",
    "finish": "its program ended with status {status}",
    "exception": "it failed or was ended ({type}): {note}",
    "overdue": "it takes longer than its deadline: {note}",
    "outlived": "{note}",
    "unread": "{note}",
    "reaped": "all its resources at its provider are deleted",
    "undrain": "burst undrains {ranks!i}",
    "grow": "it grows from {before} to {nodes!n}: {note}",
    "grown": "it has {nodes!n} now, all online: {note}",
    "shrink": "it shrinks from {before} to {nodes!n}: {note}",
    "shrink-start": "nothing runs on {ranks!i} any more; its provider ends them",
    "shrunk": "it has {nodes!n} now, and the others are deleted: {note}",
    "quarantine": "it is quarantined, so the daemon does not act on it: {note}",
    "unquarantine": "its quarantine ended: {note}",
}
"""The sentence of each event, by its name; values in braces are from its context."""
_NO_NOTE = "its provider does not say why"
# The lead sees a loss at once; the provider may report the cause a moment later.
_NO_CAUSE = "the cause is not known yet"

# The stages of a burst in order, and the event with which each begins. If there are
# several such events, the first counts.
STAGES = {
    "submit": "submit",
    "hold": "job-hold",
    "provision": "provision-start",
    "joined": "joined",
    "online": "online",
    "released": "job-release",
    "started": "job-start",
    "finished": "job-finish",
    "drained": "drained",
    "reaped": "reaped",
}
# Events of a job, and the field of JobTimes and of JobSums with its time. Of all jobs
# of a burst the first counts, for `finished` the last.
_OF_JOBS = {
    "job-hold": "held",
    "job-release": "released",
    "job-start": "started",
    "job-finish": "finished",
}
# What is told of the time between two of these stages.
_BETWEEN = (
    ("until its provider was called", "submit", "provision"),
    ("until the first rank joined", "provision", "joined"),
    ("until all were online", "joined", "online"),
    ("from online to the first job's start", "online", "started"),
    ("from the first job's start to the last one's end", "started", "finished"),
    ("until nothing ran on it", "finished", "drained"),
    ("until it was gone", "drained", "reaped"),
)


def burst_story(
    records: RecordsView, burst: Burst, settings: Settings, world: World, now: float
) -> dict[str, Any]:
    """Return all that is known about a burst; times are in seconds since the epoch."""
    lease = burst.lease
    return {
        "burst": burst.id,
        "provider": lease.provider,
        "offer": lease.offer,
        "state": burst.shown_state,
        "result": burst.result.value if burst.result else None,
        "nodes": lease.nodes,
        "standing": lease.standing,
        "next": next_step_of(burst, settings, world, now),
        "hosts": format_hostlist(lease.hosts),
        "ranks": format_idset(lease.ranks),
        "events": [
            {"timestamp": event.timestamp, "name": event.name, "text": sentence(event)}
            for event in known_events(burst)
        ],
        "stages": _stages(timeline(burst)),
        "jobs": [format_f58(job) for job in sorted(burst.jobs)],
        "ended_jobs": dict(burst.sums.results),
        "price": lease.price,
        "fee": lease.fee,
        "priced_by": lease.priced_by,
        "cost": round(cost(records, burst, now), 4),
    }


def next_step_of(burst: Burst, settings: Settings, world: World, now: float) -> str:
    """Return who acts next on a burst, and by when; empty for one that has ended."""
    step, provider = _step_of(burst, settings, now), burst.lease.provider
    if step.who is Actor.NOBODY:
        return ""
    moved = why_out_of_reach(burst.lease, world.places)
    if moved or not is_enabled(burst.lease, world):
        told = OUT_OF_REACH.what.format(provider=provider)
        return f"{OUT_OF_REACH.who.value} {told}"
    limits = {
        State.DRAIN: settings.deadlines.drain,
        State.REAP: settings.deadlines.reap,
    }
    end = next_deadline(burst, settings, world.identity.started, now)
    isolated = burst.lease.isolated is not None and not burst.quarantined
    if isolated and burst.state in UNDER_WAY and end < now:
        step = UNREAD
    if burst.state in limits:
        end = burst.since + limits[burst.state]
    elif step is GROWS:
        end = growth_end(burst, settings)
    # An idle burst that a job waits for is kept for longer than its limit.
    until = f" ({time_after(end, now)})" if now < end < math.inf else ""
    facts = {"until": until, "burst": burst.id, "provider": provider}
    return f"{step.who.value} {step.what.format_map(facts)}"


def _step_of(burst: Burst, settings: Settings, now: float) -> NextStep:
    """Return the next step for a burst in its state."""
    if burst.quarantined:
        return QUARANTINED
    online = burst.state is State.ONLINE
    return _step_online(burst, settings, now) if online else BURST_STEPS[burst.state]


def _step_online(burst: Burst, settings: Settings, now: float) -> NextStep:
    """Return the next step for an online burst."""
    isolated = burst.lease.isolated
    if isolated is not None:
        return PROGRAM if isolated.ends else STAYS
    if burst.lost_since is not None:
        return LOST
    if burst.coming:
        return GROWS
    if stands(burst.lease, settings, now):
        return STANDS
    return STAYS if burst.lease.tag is not None else BURST_STEPS[State.ONLINE]


def sentence(event: Event) -> str:
    """Return the sentence for an event, without a full stop.

    That for an event of a later version, before a step back, is its name.
    """
    is_loss = event.name == "lost"
    unsaid = _NO_CAUSE if is_loss else _NO_NOTE
    facts = defaultdict(lambda: "?", {"note": unsaid, **event.context})
    # Followers of an isolated burst have no ranks, and the note names them.
    ranks = facts["ranks"] or not is_loss
    return filled(SENTENCES.get(event.name, event.name) if ranks else "{note}", facts)


def _stages(times: dict[str, float]) -> list[dict[str, Any]]:
    """Return the seconds that each stage took, for stages whose ends are both known."""
    return [
        {"stage": name, "seconds": round(max(0.0, times[end] - times[begin]), 3)}
        for name, begin, end in _BETWEEN
        if begin in times and end in times
    ]


def timeline(burst: Burst) -> dict[str, float]:
    """Return when each stage began, in seconds since `begin_time`.

    Stages that have not happened are missing.
    """
    start = begin_time(burst)
    stages: dict[str, float] = {}
    for stage, name in STAGES.items():
        when = _first(burst, name)
        if when is not None:
            stages[stage] = round(max(0.0, when - start), 3)
    stages["submit"] = 0.0
    return stages


def state_times(burst: Burst) -> list[dict[str, Any]]:
    """Return each state that a burst was in, in order, and when it entered the state.

    The keys are `state` and `at`, which is in seconds since the epoch.
    """
    state, found = State.NEW, [(State.NEW, burst.lease.created)]
    for event in burst.events:
        after = EDGES.get((state, event.name), state)
        if after is not state:
            found.append((after, event.timestamp))
        state = after
    return [{"state": state.value, "at": at} for state, at in found]


def begin_time(burst: Burst) -> float:
    """Return when the first of its jobs was submitted, or the burst was requested."""
    submitted, created = burst.sums.submitted, burst.lease.created
    return created if submitted is None else min(submitted, created)


def known_events(burst: Burst, job: JobId | None = None) -> list[Event]:
    """Return the known events of a burst and of its jobs, in order of time.

    If `job` is given, events of other jobs are left out. Of jobs that ended, only the
    last KEPT_JOBS are still known one by one.
    """
    jobs = {**dict(burst.sums.recent), **burst.times}
    chosen = jobs if job is None else {job: jobs[job]} if job in jobs else {}
    told = [*burst.events, *(e for item in chosen.items() for e in _of_job(*item))]
    return sorted(told, key=lambda event: event.timestamp)


def assigned_jobs(burst: Burst) -> frozenset[JobId]:
    """Return the jobs known to be, or to have been, assigned to the burst."""
    ended = (job for job, _ in burst.sums.recent)
    return frozenset((*burst.times, *ended))


def _first(burst: Burst, name: str) -> float | None:
    if name in _OF_JOBS:
        when: float | None = getattr(burst.sums, _OF_JOBS[name])
        return when
    return burst.first(name)


def _of_job(job: JobId, times: JobTimes) -> Iterator[Event]:
    for name, field in _OF_JOBS.items():
        when = getattr(times, field)
        if when is not None:
            context = {"id": format_f58(job)}
            if name == "job-finish":
                context["result"] = times.result
            yield Event(when, name, context)
