# SPDX-License-Identifier: MIT
"""Changes the times on record: seconds since the epoch, by the clock of then.

Records have deadlines and leases as times since the epoch, but users rely on durations:
a burst whose lease has an hour left still has it after the clock was set ahead by two.
So a step of the system clock moves all times of live bursts and jobs by as much; times
of ended ones are not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from burst.core.money.ledger import Entry
from burst.decode import from_json
from burst.errors import RecordUnreadable
from burst.model.burst import JobSums, JobTimes
from burst.model.event import Event
from burst.model.hold import Hold, decode_hold, encode_hold
from burst.model.record import BurstRecord, decode_job, decode_record, encode_job
from burst.runtime.clock import ClockMark

Change = Callable[[float], float]
_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_OF_JOB = ("submitted", "held", "released", "started", "finished")
_OF_HOLD = [each.name for each in msgspec.structs.fields(Hold) if each.type is float]
CLOCK = "meta/clock"
"""Key of the clock by which the records are written."""


def find_step(text: str | None, clock: ClockMark) -> float:
    """Return by how many seconds the clock was set since the records were written."""
    if text is None:
        return 0.0
    try:
        return from_json(text, ClockMark).step_to(clock)
    except msgspec.MsgspecError:
        return 0.0  # written by another version; it is written again


def move_times(texts: Mapping[str, str], step: float) -> dict[str, str]:
    """Return the records that change when times move by `step` seconds, by key.

    Records that cannot be read are left out.
    """
    moved: dict[str, str] = {}
    if not step:
        return moved

    def move(at: float) -> float:
        return at + step

    ended: set[str] = set()
    for key, text in sorted(texts.items()):  # burst/ comes before job/
        kind, _, name = key.partition("/")
        try:
            match kind:
                case "burst":
                    record = decode_record(text)
                    if any(event.name == "reaped" for event in record.events):
                        ended.add(name)
                    else:
                        lease = changed(record.lease, ("created", "end"), move)
                        record = msgspec.structs.replace(record, lease=lease)
                        found = change_events(record, move)
                        moved[key] = msgspec.json.encode(found).decode()
                case "job" if name.rpartition("/")[0] not in ended:
                    times = changed(decode_job(text), ("here",), move)
                    moved[key] = encode_job(change_job(times, move))
                case "hold":
                    moved[key] = encode_hold(change_hold(decode_hold(text), move))
                case "entry":
                    entry = from_json(text, Entry)
                    entry = changed(entry, ("made", "until", "at"), move)
                    moved[key] = msgspec.json.encode(entry).decode()
        except (RecordUnreadable, msgspec.MsgspecError):
            continue
    return moved


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
