# SPDX-License-Identifier: MIT
"""The answer to `burst explain BURST`: its events, durations, jobs and cost.

Each event of burst.core.lifecycle has one sentence here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from burst.config import Settings
from burst.core.burst_actions import next_deadline
from burst.core.cost import cost
from burst.core.lifecycle import UNDER_WAY
from burst.core.observation import is_enabled, why_out_of_reach
from burst.core.records import RecordsView
from burst.core.resizing import growth_end
from burst.core.standing import stands
from burst.core.timeline import known_events, timeline
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.model.decision import filled, time_after
from burst.model.event import Event
from burst.model.jobid import format_f58
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

# Each stage, with the events that begin and end it by their names in
# burst.core.timeline.
_STAGES = (
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
    if burst.lost_since is not None:
        return LOST
    if burst.coming:
        return GROWS
    isolated = burst.lease.isolated
    if isolated is not None:
        return PROGRAM if isolated.ends else STAYS
    if stands(burst.lease, settings, now):
        return STANDS
    return STAYS if burst.lease.tag is not None else BURST_STEPS[State.ONLINE]


def sentence(event: Event) -> str:
    """Return the sentence for an event, without a full stop.

    That for an event of a later version, before a step back, is its name.
    """
    unsaid = _NO_CAUSE if event.name == "lost" else _NO_NOTE
    facts = defaultdict(lambda: "?", {"note": unsaid, **event.context})
    return filled(SENTENCES.get(event.name, event.name), facts)


def _stages(times: dict[str, float]) -> list[dict[str, Any]]:
    """Return the seconds that each stage took, for stages whose ends are both known."""
    return [
        {"stage": name, "seconds": round(max(0.0, times[end] - times[begin]), 3)}
        for name, begin, end in _STAGES
        if begin in times and end in times
    ]
