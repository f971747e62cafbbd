# SPDX-License-Identifier: MIT
"""What each event changes in a burst besides its state: jobs, sizes and times.

`CHANGES` has a function for each event, which returns the fields of the burst that
change. Events of jobs that are not assigned to the burst change nothing. An event of a
growth or shrink has all sizes of the burst at that moment, not the changes: so the last
of several such events yields the same burst as all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from burst.model.burst import (
    KEPT_JOBS,
    LEAD_MOVED,
    NOT_HELD,
    RECLAIMED,
    WITH_LEAD,
    Burst,
    JobSums,
    JobTimes,
    Lease,
    Resize,
    Result,
)
from burst.model.event import Event
from burst.model.jobid import JobId, parse_jobid
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset

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
IN_USE: Mapping[str, Any] = MappingProxyType(
    {"unused_since": None, "keep_idle": math.inf}
)
"""The changes after something has begun to run on the burst."""


def _assign(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after jobs were assigned to the burst."""
    found = {
        parse_jobid(job): float(submitted)
        for job, submitted in event.context.get("jobs", {}).items()
    }
    if not found:
        return {}
    new = {job: JobTimes(submitted=at) for job, at in found.items()}
    first = min(found.values())
    return {
        "times": {**new, **burst.times},
        "sums": _earlier(burst.sums, "submitted", first),
    }


def _job_start(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job was seen running."""
    return {**_first_time(burst, event, "started"), **IN_USE}


def _job_leave(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job has left the burst and goes on without it."""
    return {"times": _without(burst, parse_jobid(event.context["id"]))}


def _job_finish(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes after a job has ended: it is counted, and kept for a while.

    The last KEPT_JOBS jobs that ended are kept one by one.
    """
    job = parse_jobid(event.context["id"])
    times = burst.times.get(job)
    if times is None:
        return {}
    sums, at = burst.sums, event.timestamp
    result = str(event.context.get("result", "unknown"))
    ended = msgspec.structs.replace(times, finished=at, result=result)
    results = {**sums.results, result: sums.results.get(result, 0) + 1}
    return {
        "times": _without(burst, job),
        "sums": msgspec.structs.replace(
            sums,
            finished=max(at, sums.finished or at),
            results=results,
            recent=(*sums.recent, (job, ended))[-KEPT_JOBS:],
        ),
    }


def _reaped(burst: Burst, _: Event) -> dict[str, Any]:
    """Return the changes after the burst is gone: only KEPT_JOBS of its jobs are kept.

    These jobs can still be told what became of it. Otherwise bursts that fail one after
    the other for the same jobs would each keep a record of every job.
    """
    order = {
        job: (of.started is not None, of.submitted) for job, of in burst.times.items()
    }
    last = sorted(order, key=lambda job: order[job])[-KEPT_JOBS:]
    return {"times": {job: of for job, of in burst.times.items() if job in last}}


def _without(burst: Burst, job: JobId) -> dict[JobId, JobTimes]:
    return {known: of for known, of in burst.times.items() if known != job}


def _first_time(burst: Burst, event: Event, what: str) -> dict[str, Any]:
    """Record when something first happened to a job; later events change nothing."""
    job, when = parse_jobid(event.context["id"]), event.timestamp
    times = burst.times.get(job)
    if times is None or getattr(times, what) is not None:
        return {}
    times = msgspec.structs.replace(times, **{what: when})
    return {
        "times": {**burst.times, job: times},
        "sums": _earlier(burst.sums, what, when),
    }


def _earlier(sums: JobSums, what: str, when: float) -> JobSums:
    """Return the sums with that time, if it is earlier than the time they have."""
    known = getattr(sums, what)
    if known is not None and known <= when:
        return sums
    return msgspec.structs.replace(sums, **{what: when})


def size_context(burst: Burst, lease: Lease, **more: Any) -> dict[str, Any]:
    """Return the context of an event after which a burst has the hosts of a lease.

    `more` must have `online`: the ranks that have to stay online. A failed growth is
    remembered unless `more` has another `growth_failed`.
    """
    known = {"growth_failed": True} if burst.growth_failed else {}
    return {
        "hosts": format_hostlist(lease.hosts),
        "ranks": format_idset(lease.ranks),
        **known,
        **more,
    }


def _grow(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes when a growth begins: further ranks are leased."""
    resize = _begun("grow", event)
    resize = msgspec.structs.replace(resize, called=event.timestamp)
    # A burst that is asked to grow is needed, so it is not idle.
    return {**_sizes(burst, event), **IN_USE, "resize": resize}


def _grown(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes at the end of a growth: all further ranks are online."""
    return {**_sizes(burst, event), **IN_USE, "resize": None}


def _shrink(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes when a shrink begins: its last ranks get no more jobs."""
    return {**_sizes(burst, event), "resize": _begun("shrink", event)}


def _shrink_start(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes once nothing runs on its last ranks, in a shrink."""
    if burst.resize is None or burst.resize.kind == "grow":
        raise ValueError("it does not shrink")
    called = msgspec.structs.replace(burst.resize, called=event.timestamp)
    return {"resize": called}


def _shrunk(burst: Burst, event: Event) -> dict[str, Any]:
    """Return the changes at the end of a shrink: its last ranks are gone."""
    return {**_sizes(burst, event), "resize": None}


def _begun(kind: Literal["grow", "shrink"], event: Event) -> Resize:
    context = event.context
    return Resize(
        kind=kind,
        nodes=int(context["nodes"]),
        before=int(context["before"]),
        since=event.timestamp,
        requested=bool(context["requested"]),
        why=str(context["note"]),
    )


def _sizes(burst: Burst, event: Event) -> dict[str, Any]:
    context = event.context
    hosts = parse_hostlist(context["hosts"])
    ranks = tuple(sorted(parse_idset(context["ranks"])))
    if not hosts or len(hosts) != len(ranks):
        raise ValueError(f"{len(hosts)} hosts, {len(ranks)} ranks")
    return {
        "lease": msgspec.structs.replace(burst.lease, hosts=hosts, ranks=ranks),
        "expected": parse_idset(context["online"]),
        "growth_failed": bool(context.get("growth_failed")),
    }


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
    """Move the beginnings of what the burst waits for (`burst.core.sync`).

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


CHANGES: dict[str, Callable[[Burst, Event], dict[str, Any]]] = {
    "submit": _assign,
    "assign": _assign,
    "job-hold": lambda burst, event: _first_time(burst, event, "held"),
    "job-release": lambda burst, event: _first_time(burst, event, "released"),
    "job-start": _job_start,
    "job-finish": _job_finish,
    "job-leave": _job_leave,
    "reaped": _reaped,
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
    "busy": lambda _, __: dict(IN_USE),
    "quarantine": _quarantined,
    "unread": _unread,
    "grow": _grow,
    "grown": _grown,
    "shrink": _shrink,
    "shrink-start": _shrink_start,
    "shrunk": _shrunk,
    "unquarantine": lambda _, __: {"quarantined": "", "out_of_reach": False},
}
