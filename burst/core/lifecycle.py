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

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.core import burst_jobs, sizes
from burst.core.kept_events import cut_note, kept
from burst.model.burst import (
    LEAD_MOVED,
    NOT_HELD,
    RECLAIMED,
    WITH_LEAD,
    Burst,
    JobTimes,
    Lease,
    Result,
    State,
)
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.ranks import parse_idset
from burst.model.record import BurstRecord

BEFORE_REAP = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE, State.DRAIN)

EDGES: dict[tuple[State, str], State] = {
    # The plan is recorded; the provider was not called yet.
    (State.NEW, "submit"): State.NEW,
    # The intent is recorded: from here on something may exist that costs money.
    (State.NEW, "provision-start"): State.PROVISION,
    # The provider reports that all followers are started, or all ranks are online.
    (State.PROVISION, "provision-finish"): State.JOIN,
    # All ranks are online (or, with `partial = "keep"`, those that joined in time).
    **{(state, "online"): State.ONLINE for state in BEFORE_REAP[1:3]},
    # The program of an isolated burst has ended, whichever states were seen before.
    **{(state, "finish"): State.REAP for state in BEFORE_REAP[1:4]},
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
    "joined": (State.PROVISION, State.JOIN, State.ONLINE, State.DRAIN, State.REAP),
    "lost": (State.ONLINE, State.DRAIN, State.REAP),
    "back": (State.ONLINE, State.DRAIN),
    "reclaimed": (State.PROVISION, State.JOIN, State.ONLINE),
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
    "overdue": (State.PROVISION, State.JOIN, State.ONLINE, State.DRAIN, State.REAP),
    "outlived": tuple(State),
    "unread": (*BEFORE_REAP, State.REAP),
    "quarantine": tuple(State),
    "unquarantine": tuple(State),
}

OUT_OF_REACH = "out-of-reach"
"""The cause of quarantine if the provider of a burst is set to another place."""

RESULTS = {
    "canceled": Result.CANCELED,
    NOT_HELD: Result.CANCELED,
    WITH_LEAD: Result.CANCELED,
    LEAD_MOVED: Result.CANCELED,
    "timeout": Result.TIMEOUT,
    RECLAIMED: Result.RECLAIMED,
}
"""Types of `exception` with a result other than FAILED; all others are failures."""


def submission(jobs: Mapping[JobId, float], now: float) -> Event:
    """Return the first event of a burst; `jobs` as for `begin`."""
    from_job = {format_f58(job): submitted for job, submitted in jobs.items()}
    return Event(now, "submit", {"jobs": from_job})


def begin(lease: Lease, jobs: Mapping[JobId, float], now: float) -> Burst:
    """Return a new burst; `jobs` are the jobs it is made for, with submit times."""
    return apply(Burst(lease=lease, since=now), submission(jobs, now))


def restore(record: BurstRecord, jobs: Mapping[JobId, JobTimes]) -> Burst:
    """Return the burst that a record and the records of its jobs describe."""
    burst = Burst(
        lease=record.lease,
        sums=record.sums,
        times=jobs,
        jobs=frozenset(jobs),
        started=frozenset(
            job for job, times in jobs.items() if times.started is not None
        ),
    )
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
        event = cut_note(event)
        derive = _DERIVED.get(event.name)
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


def _online(_: Burst, event: Event) -> dict[str, Any]:
    return {"expected": parse_idset(event.context["ranks"]), "reclaimed": ""}


def _joined(burst: Burst, event: Event) -> dict[str, Any]:
    return {"joined_ranks": burst.joined_ranks | parse_idset(event.context["ranks"])}


def _drain(burst: Burst, event: Event) -> dict[str, Any]:
    return {
        "drained": burst.drained | parse_idset(event.context["ranks"]),
        "result": Result(event.context["result"]),
        "resize": None,
    }


def _rank_drain(burst: Burst, event: Event) -> dict[str, Any]:
    return {"drained": burst.drained | parse_idset(event.context["ranks"])}


def _undrain(burst: Burst, event: Event) -> dict[str, Any]:
    return {"drained": burst.drained - parse_idset(event.context["ranks"])}


def _finish(_: Burst, event: Event) -> dict[str, Any]:
    status = int(event.context["status"])
    return {"exit_status": status, "result": Result.COMPLETED}


def _exception(_: Burst, event: Event) -> dict[str, Any]:
    kind = event.context["type"]
    return {
        "exception": kind,
        "result": RESULTS.get(kind, Result.FAILED),
        "unused_since": None,
        "lost_since": None,
        "resize": None,
    }


def _idle(_: Burst, event: Event) -> dict[str, Any]:
    # Missing if only `[deadlines] idle` counts.
    keep = float(event.context.get("keep", math.inf))
    return {"unused_since": event.timestamp, "keep_idle": keep}


def _unread(burst: Burst, event: Event) -> dict[str, Any]:
    """Move the beginnings of what the burst waits for (`burst.core.unread_time`).

    If the burst has stopped waiting for something, no event of that wait is kept before
    this one.
    """
    times = event.context
    changes: dict[str, Any] = {"since": float(times["since_at"])}
    if burst.unused_since is not None:
        changes["unused_since"] = float(times["unused_at"])
    if burst.lost_since is not None:
        changes["lost_since"] = float(times["lost_at"])
    if burst.resize is not None:
        called = times.get("called_at")
        changes["resize"] = msgspec.structs.replace(
            burst.resize,
            since=float(times["resize_at"]),
            called=None if called is None else float(called),
        )
    return changes


def _quarantined(_: Burst, event: Event) -> dict[str, Any]:
    moved = event.context.get("cause") == OUT_OF_REACH
    return {"quarantined": event.context["note"], "out_of_reach": moved}


_DERIVED: dict[str, Callable[[Burst, Event], dict[str, Any]]] = {
    # By event: the fields that it changes besides the state.
    "submit": burst_jobs.assign,
    "assign": burst_jobs.assign,
    "job-hold": burst_jobs.job_hold,
    "job-release": burst_jobs.job_release,
    "job-start": burst_jobs.job_start,
    "job-finish": burst_jobs.job_finish,
    "job-leave": burst_jobs.job_leave,
    "reaped": burst_jobs.reaped,
    "joined": _joined,
    "online": _online,
    "drain": _drain,
    "rank-drain": _rank_drain,
    "undrain": _undrain,
    "finish": _finish,
    "exception": _exception,
    "lost": lambda _, event: {
        # Missing in records of earlier versions.
        "lost_since": event.context.get("since", event.timestamp)
    },
    "back": lambda _, __: {"lost_since": None, "reclaimed": ""},
    "reclaimed": lambda _, event: {"reclaimed": event.context["note"]},
    "idle": _idle,
    "busy": lambda _, __: dict(burst_jobs.IN_USE),
    "quarantine": _quarantined,
    "unread": _unread,
    "grow": sizes.grow,
    "grown": sizes.grown,
    "shrink": sizes.shrink,
    "shrink-start": sizes.shrink_start,
    "shrunk": sizes.shrunk,
    "unquarantine": lambda _, __: {"quarantined": "", "out_of_reach": False},
}
