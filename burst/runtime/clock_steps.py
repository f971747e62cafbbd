# SPDX-License-Identifier: MIT
"""Moves the times on record after a step of the system clock.

Records have deadlines and leases as times since the epoch, but users rely on durations:
a burst whose lease has an hour left still has it after the clock was set ahead by two.
So all times of live bursts and jobs are moved by the step; times of ended ones are not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.core.worth.ledger import Entry
from burst.decode import from_json
from burst.errors import RecordUnreadable
from burst.model.hold import decode_hold, encode_hold
from burst.model.record import decode_job, decode_record, encode_job
from burst.runtime.clock import ClockMark
from burst.runtime.record_times import change_events, change_hold, change_job, changed

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
