# SPDX-License-Identifier: MIT
"""The state machine of a burst: a table of edges, and replay of events.

Every change of a burst is one RFC 18 event. Replaying the kept events yields the burst,
together with the times of its jobs and their sums. The number and size of kept events
are bounded, so that a burst may live for months and run any number of jobs.
States stand for phases of potentially long duration (RFC 21's rule), so failure is an
event and a result, not a state. An event that the table does not have quarantines the
burst: one bad record must never stop the other bursts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.core.event_changes import CHANGES
from burst.model.burst import Burst, JobTimes, Lease, State
from burst.model.event import LONGEST_NOTE, Event, cut
from burst.model.jobid import JobId, format_f58
from burst.model.ranks import format_idset, parse_idset
from burst.model.record import BurstRecord

COMING_UP = (State.PROVISION, State.JOIN)
UNDER_WAY = (*COMING_UP, State.ONLINE)
"""States in which a burst comes up or is up."""
BEFORE_ONLINE = (State.NEW, *COMING_UP)
BEFORE_REAP = (State.NEW, *UNDER_WAY, State.DRAIN)

EDGES: dict[tuple[State, str], State] = {
    # The plan is recorded; the provider was not called yet.
    (State.NEW, "submit"): State.NEW,
    # The intent is recorded: from here on something may exist that costs money.
    (State.NEW, "provision-start"): State.PROVISION,
    # The provider reports that all followers are started, or all ranks are online.
    (State.PROVISION, "provision-finish"): State.JOIN,
    # All ranks are online (or, with `partial = "keep"`, those that joined in time).
    **{(state, "online"): State.ONLINE for state in COMING_UP},
    # The program of an isolated burst has ended, whichever states were seen before.
    **{(state, "finish"): State.REAP for state in UNDER_WAY},
    # No job needs it any more, or a person took it down: no new job may start on it.
    (State.ONLINE, "drain"): State.DRAIN,
    # No allocation is left on its ranks.
    (State.DRAIN, "drained"): State.REAP,
    # Failed, canceled or late. Its ranks are drained and the jobs on them end before
    # the provider is told to delete it (`burst_actions`).
    **{(state, "exception"): State.REAP for state in BEFORE_REAP},
    # The provider raised NotFound, and no rank of the burst is online.
    (State.REAP, "reaped"): State.INACTIVE,
}

# Events that change no state, and the states in which they may happen.
NOTES: dict[str, tuple[State, ...]] = {
    # Flux may start a job on the burst before the drain takes effect.
    "assign": (*BEFORE_REAP, State.REAP),
    "job-leave": tuple(State),
    "job-hold": tuple(State),
    "job-release": tuple(State),
    "job-start": tuple(State),
    "job-finish": tuple(State),
    "joined": (*UNDER_WAY, State.DRAIN, State.REAP),
    "lost": (State.ONLINE, State.DRAIN, State.REAP),
    "back": (State.ONLINE, State.DRAIN),
    "reclaimed": UNDER_WAY,
    "busy": (State.ONLINE,),
    "idle": (State.ONLINE,),
    "retry": (State.PROVISION, State.ONLINE, State.REAP),
    "grow": (State.ONLINE,),
    "grown": (State.ONLINE,),
    "shrink": (State.ONLINE,),
    "shrink-start": (State.ONLINE,),
    "shrunk": (State.ONLINE,),
    "rank-drain": (State.DRAIN, State.REAP),
    "housekeeping-kill": (State.ONLINE, State.DRAIN, State.REAP),
    "undrain": (State.INACTIVE,),
    "overdue": (*UNDER_WAY, State.DRAIN, State.REAP),
    "outlived": tuple(State),
    "unread": (*BEFORE_REAP, State.REAP),
    "quarantine": tuple(State),
    "unquarantine": tuple(State),
}

# The earlier events that each event replaces (_VOIDS), by groups of names.
_IDLENESS = frozenset({"busy", "idle"})
_LOSS = frozenset({"lost", "back"})
_SIZES = frozenset({"grow", "grown", "shrink", "shrink-start", "shrunk"})
_QUARANTINE = frozenset({"quarantine", "unquarantine"})
_VOIDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_IDLENESS, _IDLENESS),
    "lost": _LOSS,
    # Followers that are back are not reclaimed, so "reclaimed" must not be kept any
    # longer. Why they were lost is kept, as jobs were there.
    "back": frozenset({"back", "reclaimed"}),
    **dict.fromkeys(_QUARANTINE, _QUARANTINE),
    # A job that runs on a burst ends its idleness; being assigned to it does not.
    "job-start": _IDLENESS,
    # Each of these includes what earlier ones say, and nodes that come end idleness.
    # Some sizes that were reached are still kept, for people (_REACHED).
    **dict.fromkeys(("grow", "grown"), _SIZES | _IDLENESS | {"overdue"}),
    **dict.fromkeys(("shrink", "shrunk"), _SIZES | {"overdue"}),
    "shrink-start": frozenset({"shrink-start", "overdue"}),
    "overdue": frozenset({"overdue"}),
    "outlived": frozenset({"outlived"}),
    "unread": frozenset({"unread"}),
    "retry": frozenset({"retry"}),
    "housekeeping-kill": frozenset({"housekeeping-kill"}),
    "reclaimed": frozenset({"reclaimed"}),
}

# How many events with sizes that were reached are kept for people besides the last one.
_REACHED = frozenset({"grown", "shrunk"})
_KEPT_SIZES = 3
_STAGES = frozenset({"online", "grown"})
# Events about ranks: the first event of a name is kept, and one for the ranks of all
# others. Of "joined" one more is kept until the burst is online, and for each growth.
_JOINT = {"rank-drain", "undrain"}

# Not kept as events: their effect is in Burst.times and Burst.sums.
_OF_JOBS = {
    *("assign", "job-hold", "job-release", "job-start", "job-leave", "job-finish"),
}


def begin(lease: Lease, jobs: Mapping[JobId, float], now: float) -> Burst:
    """Return a new burst; `jobs` are the jobs it is made for, with submit times."""
    return apply(Burst(lease=lease, since=now), Event(now, "submit", named(jobs)))


def named(jobs: Mapping[JobId, float]) -> dict[str, dict[str, float]]:
    """Return the context of an event that gives jobs to a burst."""
    return {"jobs": {format_f58(job): submitted for job, submitted in jobs.items()}}


def restore(record: BurstRecord, jobs: Mapping[JobId, JobTimes]) -> Burst:
    """Return the burst that a record and the records of its jobs describe."""
    burst = Burst(lease=record.lease, sums=record.sums, times=jobs)
    for event in record.events:
        burst = apply(burst, event)
    return burst


def expect_here(burst: Burst, starts: Mapping[JobId, float]) -> Burst:
    """Return the burst with the expected starts of its jobs on own nodes.

    A time that was noted before stays. This is not an event: no decision depends on it.
    """
    noted = {
        job: msgspec.structs.replace(times, here=starts[job])
        for job, times in burst.times.items()
        if job in starts and times.here is None
    }
    if not noted:
        return burst
    return msgspec.structs.replace(burst, times={**burst.times, **noted})


def apply(burst: Burst, event: Event) -> Burst:
    """Return the burst after the event. Never raises; see `step`."""
    return step(burst, event)[0]


def step(burst: Burst, event: Event) -> tuple[Burst, Event]:
    """Return the burst after an event, and the event that was applied.

    Never raises: an event that is not in the tables, or that cannot be read, is
    replaced by a quarantine. Long notes are cut.
    """
    edge = EDGES.get((burst.state, event.name))
    if edge is None and burst.state not in NOTES.get(event.name, ()):
        why = f"unexpected event {event.name} in state {burst.state.value}"
        return step(burst, Event(event.timestamp, "quarantine", {"note": why}))
    try:
        event = _cut_note(event)
        derive = CHANGES.get(event.name)
        changes = derive(burst, event) if derive else {}
        events = kept(burst.events, event)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"event {event.name} cannot be read: {error!r}"
        return step(burst, Event(event.timestamp, "quarantine", {"note": why}))
    if edge is not None:
        changes |= {"state": edge, "since": event.timestamp}
    if events is not burst.events:
        changes["events"] = events
    after = msgspec.structs.replace(burst, **changes) if changes else burst
    return after, event


def quarantine(burst: Burst, why: str, now: float) -> Burst:
    """Return the burst quarantined: nothing is done to it until a person decides."""
    return apply(burst, Event(now, "quarantine", {"note": why}))


def _cut_note(event: Event) -> Event:
    """Return the event with its note cut to LONGEST_NOTE."""
    note = event.context.get("note")
    if not isinstance(note, str) or len(note) <= LONGEST_NOTE:
        return event
    return msgspec.structs.replace(event, context={**event.context, "note": cut(note)})


def kept(events: tuple[Event, ...], event: Event) -> tuple[Event, ...]:
    """Return the events that are kept after one more event.

    These are a few of each name, so that a record does not grow while its burst lives.
    """
    name = event.name
    void = _VOIDS.get(name)
    if void and any(old.name in void for old in events):
        reached = [old for old in events if old.name in _REACHED][-_KEPT_SIZES:]
        events = tuple(
            old
            for old in events
            if old.name not in void or any(old is size for size in reached)
        )
    if name in _OF_JOBS:
        return events
    if name == "submit":
        event = msgspec.structs.replace(event, context={})
    if name in _JOINT:
        return tuple(_join(events, event))
    return tuple(_join_by_stage((*events, event)))


def _join(events: tuple[Event, ...], event: Event) -> list[Event]:
    """Return the events, with all but the first of this event's name united in one."""
    same = [old for old in events if old.name == event.name]
    if len(same) < 2:
        return [*events, event]
    return [*(old for old in events if old is not same[1]), _united(same[1], event)]


def _join_by_stage(events: tuple[Event, ...]) -> list[Event]:
    """Return the events, with "joined" events united in one for each stage.

    The very first "joined" event is kept by itself.
    """
    found: list[Event] = []
    joined, is_first = None, True
    for event in events:
        told = event
        if event.name in _STAGES:
            joined = None
        elif event.name == "joined" and is_first:
            is_first = False
        elif event.name == "joined":
            if joined is not None:
                found = [old for old in found if old is not joined]
                told = _united(joined, event)
            joined = told
        found.append(told)
    return found


def _united(one: Event, later: Event) -> Event:
    ranks = parse_idset(one.context["ranks"]) | parse_idset(later.context["ranks"])
    return Event(later.timestamp, later.name, {"ranks": format_idset(ranks)})
