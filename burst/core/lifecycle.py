# SPDX-License-Identifier: MIT
"""THE state machine of a burst: a table of edges, and replay.

Every change of a burst is one RFC 18 event; a burst is what replaying its events says.
States stand for phases of potentially long duration (RFC 21's rule), so failure is an
event and a result, not a state. An event that the table does not have quarantines the
burst: one bad record must never stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from burst.model.burst import NOT_HELD, Burst, Lease, Result, State
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.model.ranks import parse_idset

LIVE = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE, State.DRAIN)

EDGES: dict[tuple[State, str], State] = {
    # The plan was recorded; nothing was asked of the provider yet.
    (State.NEW, "submit"): State.NEW,
    # Intent is on record: from here on something may exist that costs money.
    (State.NEW, "provision-start"): State.PROVISION,
    # The provider says that all followers are started, or the lead saw one.
    (State.PROVISION, "provision-finish"): State.JOIN,
    # All ranks are online at the lead (or those that came, where `partial` keeps them).
    (State.JOIN, "online"): State.ONLINE,
    # What an isolated burst was made for has run and ended, however far we saw it come.
    **{(state, "finish"): State.REAP for state in LIVE[1:4]},
    # Nothing needs it any more, or a person took it down: no new job may start on it.
    (State.ONLINE, "drain"): State.DRAIN,
    # No allocation is left on its ranks.
    (State.DRAIN, "drained"): State.REAP,
    # Failed, canceled or late. What runs on its ranks still ends first: see reap.
    **{(state, "exception"): State.REAP for state in LIVE},
    # The provider said NotFound and no rank of it is online.
    (State.REAP, "reaped"): State.INACTIVE,
}

# Events that change no state, and the states in which they may happen.
NOTES: dict[str, tuple[State, ...]] = {
    "assign": (State.NEW, State.PROVISION, State.JOIN, State.ONLINE),
    "job-hold": tuple(State),
    "job-release": tuple(State),
    "job-start": tuple(State),
    "job-finish": tuple(State),
    "joined": (State.PROVISION, State.JOIN, State.ONLINE, State.DRAIN, State.REAP),
    "lost": (State.ONLINE, State.DRAIN, State.REAP),
    "back": (State.ONLINE,),
    "busy": (State.ONLINE,),
    "idle": (State.ONLINE,),
    "retry": (State.PROVISION, State.REAP),
    "rank-drain": (State.DRAIN, State.REAP),
    "undrain": (State.INACTIVE,),
    "overdue": (State.DRAIN, State.REAP),
    "quarantine": tuple(State),
    "acquit": tuple(State),
}

RESULTS = {
    "canceled": Result.CANCELED,
    NOT_HELD: Result.CANCELED,
    "timeout": Result.TIMEOUT,
}
"""Types of `exception` that are a result of their own; all others are a failure."""

# Of these only the latest is kept in a record, which must not grow while it idles.
_LATEST_ONLY = {"busy", "idle", "overdue", "lost", "back", "retry"}


def begin(lease: Lease, jobs: dict[JobId, float], now: float) -> Burst:
    """Return a new burst; `jobs` are those it is made for, and when each came in."""
    from_job = {format_f58(job): submitted for job, submitted in jobs.items()}
    burst = Burst(lease=lease, since=now)
    return apply(burst, Event(now, "submit", {"jobs": from_job}))


def replay(lease: Lease, events: Iterable[Event]) -> Burst:
    """Return the burst that these events made."""
    burst = Burst(lease=lease)
    for event in events:
        burst = apply(burst, event)
    return burst


def apply(burst: Burst, event: Event) -> Burst:
    """Return the burst after the event. Never raises: what cannot be, quarantines."""
    edge = EDGES.get((burst.state, event.name))
    if edge is None and burst.state not in NOTES.get(event.name, ()):
        why = f"event {event.name} in state {burst.state.value}"
        return quarantine(burst, why, event.timestamp)
    try:
        changes = _derive(burst, event)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"event {event.name} cannot be read: {error!r}"
        return quarantine(burst, why, event.timestamp)
    if edge is not None:
        changes |= {"state": edge, "since": event.timestamp}
    return msgspec.structs.replace(burst, events=_append(burst, event), **changes)


def quarantine(burst: Burst, why: str, now: float) -> Burst:
    """Return the burst set apart: nothing is done to it until a person decides."""
    event = Event(now, "quarantine", {"note": why})
    return msgspec.structs.replace(
        burst, events=(*burst.events, event), quarantined=why
    )


def _append(burst: Burst, event: Event) -> tuple[Event, ...]:
    if event.name not in _LATEST_ONLY:
        return (*burst.events, event)
    older = tuple(old for old in burst.events if old.name != event.name)
    return (*older, event)


def _derive(burst: Burst, event: Event) -> dict[str, Any]:
    """Return what the event changes beside the state."""
    derive = _DERIVED.get(event.name)
    return derive(burst, event) if derive else {}


def _submit(_: Burst, event: Event) -> dict[str, Any]:
    return {"jobs": _jobs(event.context["jobs"])}


def _assign(burst: Burst, event: Event) -> dict[str, Any]:
    jobs = burst.jobs | _jobs(event.context["jobs"])
    return {"jobs": jobs, "idle_since": None}


def _job_start(burst: Burst, event: Event) -> dict[str, Any]:
    return {"started": burst.started | {parse_jobid(event.context["id"])}}


def _job_finish(burst: Burst, event: Event) -> dict[str, Any]:
    ended = {parse_jobid(event.context["id"])}
    return {"jobs": burst.jobs - ended, "started": burst.started - ended}


def _online(_: Burst, event: Event) -> dict[str, Any]:
    return {"expected": parse_idset(event.context["ranks"])}


def _joined(burst: Burst, event: Event) -> dict[str, Any]:
    return {"came": burst.came | parse_idset(event.context["ranks"])}


def _drain(burst: Burst, event: Event) -> dict[str, Any]:
    return {
        "drained": burst.drained | parse_idset(event.context["ranks"]),
        "result": Result(event.context["result"]),
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
        "idle_since": None,
        "lost_since": None,
    }


def _jobs(found: dict[str, float]) -> frozenset[JobId]:
    return frozenset(parse_jobid(job) for job in found)


_DERIVED: dict[str, Callable[[Burst, Event], dict[str, Any]]] = {
    "submit": _submit,
    "assign": _assign,
    "job-start": _job_start,
    "job-finish": _job_finish,
    "joined": _joined,
    "online": _online,
    "drain": _drain,
    "rank-drain": _rank_drain,
    "undrain": _undrain,
    "finish": _finish,
    "exception": _exception,
    "lost": lambda _, event: {"lost_since": event.timestamp},
    "back": lambda _, __: {"lost_since": None},
    "idle": lambda _, event: {"idle_since": event.timestamp},
    "busy": lambda _, __: {"idle_since": None},
    "quarantine": lambda _, event: {"quarantined": event.context["note"]},
    "acquit": lambda _, __: {"quarantined": ""},
}
