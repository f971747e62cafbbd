# SPDX-License-Identifier: MIT
"""Changes the times in records: seconds since the epoch, by the clock of then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from burst.model.burst import JobSums, JobTimes
from burst.model.event import Event
from burst.model.hold import Hold
from burst.model.record import BurstRecord

Change = Callable[[float], float]
_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_OF_JOB = ("submitted", "held", "released", "started", "finished")
_OF_HOLD = [each.name for each in msgspec.structs.fields(Hold) if each.type is float]


def changed(value: _Struct, names: Iterable[str], change: Change) -> _Struct:
    """Return the value with these times changed; a time of 0 or None is not set."""
    times = {name: getattr(value, name) for name in names}
    after = {name: change(time) for name, time in times.items() if time}
    return msgspec.structs.replace(value, **after)


def change_events(record: BurstRecord, change: Change) -> BurstRecord:
    """Return the record with the times of all that has happened to the burst changed.

    The times of its lease stay.
    """
    events = tuple(
        Event(change(event.timestamp), event.name, _in_context(event.context, change))
        for event in record.events
    )
    sums = _in_sums(record.sums, change)
    return msgspec.structs.replace(record, events=events, sums=sums)


def change_job(times: JobTimes, change: Change) -> JobTimes:
    """Return the times with those changed that tell what has happened."""
    return changed(times, _OF_JOB, change)


def change_hold(hold: Hold, change: Change) -> Hold:
    """Return the hold with all its times changed."""
    return changed(hold, _OF_HOLD, change)


def _in_context(context: dict[str, Any], change: Change) -> dict[str, Any]:
    after = {
        name: change(at)
        for name, at in context.items()
        if (name.endswith("_at") or name == "since") and isinstance(at, float)
    }
    return {**context, **after} if after else context


def _in_sums(sums: JobSums, change: Change) -> JobSums:
    recent = tuple((job, change_job(times, change)) for job, times in sums.recent)
    return changed(msgspec.structs.replace(sums, recent=recent), _OF_JOB, change)
