# SPDX-License-Identifier: MIT
"""Moves the times on record after a step of the system clock.

Records have deadlines and leases as times since the epoch, but users rely on durations:
a burst whose lease has an hour left still has it after the clock was set ahead by two.
So all times of live bursts and jobs are moved by the step; times of ended ones are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.core.worth.ledger import Entry
from burst.decode import from_json
from burst.errors import RecordUnreadable
from burst.model.burst import JobSums, JobTimes
from burst.model.event import Event
from burst.model.hold import decode_hold, encode_hold
from burst.model.record import BurstRecord, decode_job, decode_record, encode_job
from burst.runtime.clock import ClockMark

CLOCK = "meta/clock"
"""Key of the clock by which the records are written."""
_replace = msgspec.structs.replace


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
                        found = _move_burst(record, step)
                        moved[key] = msgspec.json.encode(found).decode()
                case "job" if name.rpartition("/")[0] not in ended:
                    moved[key] = encode_job(_move_job(decode_job(text), step))
                case "hold":
                    hold = decode_hold(text)
                    of_hold = ("since", "expired", "letting", "raised_since")
                    moved[key] = encode_hold(
                        _replace(hold, **_moved(hold, of_hold, step))
                    )
                case "entry":
                    entry = from_json(text, Entry)
                    times = ("made", "until", "at")
                    found_entry = _replace(entry, **_moved(entry, times, step))
                    moved[key] = msgspec.json.encode(found_entry).decode()
        except (RecordUnreadable, msgspec.MsgspecError):
            continue
    return moved


def _moved(
    value: msgspec.Struct, names: tuple[str, ...], step: float
) -> dict[str, float]:
    """Return the times of a value, moved; a time of 0 or None is not set."""
    times = {name: getattr(value, name) for name in names}
    return {name: time + step for name, time in times.items() if time}


def _move_burst(record: BurstRecord, step: float) -> BurstRecord:
    events = tuple(
        Event(event.timestamp + step, event.name, _move_context(event.context, step))
        for event in record.events
    )
    lease = _replace(record.lease, **_moved(record.lease, ("created", "end"), step))
    return _replace(
        record, lease=lease, events=events, sums=_move_sums(record.sums, step)
    )


def _move_context(context: dict[str, Any], step: float) -> dict[str, Any]:
    moved = {
        name: at + step
        for name, at in context.items()
        if (name.endswith("_at") or name == "since") and isinstance(at, float)
    }
    return {**context, **moved} if moved else context


_OF_JOB = ("submitted", "held", "released", "started", "finished")


def _move_sums(sums: JobSums, step: float) -> JobSums:
    recent = tuple((job, _move_job(times, step)) for job, times in sums.recent)
    return _replace(sums, recent=recent, **_moved(sums, _OF_JOB, step))


def _move_job(times: JobTimes, step: float) -> JobTimes:
    return _replace(times, **_moved(times, (*_OF_JOB, "here"), step))
