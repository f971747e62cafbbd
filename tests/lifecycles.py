# SPDX-License-Identifier: MIT
"""Bursts at any point of their life, made by the events that lead there."""

from __future__ import annotations

from typing import Any

import msgspec

from burst.core.lifecycle import apply, begin
from burst.model.burst import Burst, BurstId, JobTimes, Lease
from burst.model.event import Event
from burst.model.jobid import JobId
from tests.builders import NODE, T0

LEASE = Lease(
    id=BurstId("burst-0-aaaaaa"),
    provider="local",
    offer="small",
    slot="burst-0",
    hosts=("burst-0-0", "burst-0-1"),
    ranks=(2, 3),
    shape=NODE,
)


CONTEXT: dict[str, dict[str, Any]] = {
    "submit": {"jobs": {"1": T0}},
    "assign": {"jobs": {"2": T0}},
    "job-start": {"id": "1"},
    "job-finish": {"id": "1"},
    "job-leave": {"id": "1", "note": "it runs on rank 0"},
    "joined": {"ranks": "2"},
    "online": {"ranks": "2-3"},
    "drain": {"ranks": "2-3", "result": "completed"},
    "rank-drain": {"ranks": "2"},
    "undrain": {"ranks": "2-3"},
    "grow": {
        "nodes": 3,
        "before": 2,
        "hosts": "burst-0-[0-2]",
        "ranks": "2-4",
        "online": "2-3",
        "requested": True,
        "note": "by hand",
    },
    "grown": {
        "nodes": 3,
        "hosts": "burst-0-[0-2]",
        "ranks": "2-4",
        "online": "2-4",
    },
    "shrink": {
        "nodes": 1,
        "before": 2,
        "hosts": "burst-0-[0-1]",
        "ranks": "2-3",
        "online": "2",
        "requested": False,
        "note": "its last nodes are idle",
    },
    "shrink-start": {"ranks": "3"},
    "shrunk": {
        "nodes": 1,
        "hosts": "burst-0-0",
        "ranks": "2",
        "online": "2",
    },
    "exception": {"type": "timeout", "note": "late"},
    "quarantine": {"note": "odd"},
    "unread": {
        "since_at": T0 + 2.5,
        "unused_at": T0 + 3.5,
        "lost_at": T0 + 4.5,
        "resize_at": T0 + 5.5,
        "called_at": T0 + 6.5,
        "note": "the lead was not read for 1m",
    },
}


def run(*names, at=T0):
    burst = begin(LEASE, {JobId(1): T0}, T0)
    for step, name in enumerate(names, 1):
        burst = apply(burst, Event(at + step, name, CONTEXT.get(name, {})))
    return burst


def leased(burst: Burst, **changes: Any) -> Burst:
    """The burst with another lease."""
    lease = msgspec.structs.replace(burst.lease, **changes)
    return msgspec.structs.replace(burst, lease=lease)


def with_jobs(burst: Burst, *jobs: int) -> Burst:
    """The burst with these jobs alone, of which none has started."""
    times = {JobId(job): JobTimes(submitted=T0) for job in jobs}
    return msgspec.structs.replace(burst, times=times)


WHOLE_WAY = (
    "provision-start",
    "provision-finish",
    "joined",
    "online",
    "job-start",
    "job-finish",
    "idle",
    "drain",
    "drained",
    "reaped",
    "undrain",
)
