# SPDX-License-Identifier: MIT
"""The records of a burst as text: one for the burst, one for each assigned job.

The size of the burst's record does not depend on the number of its jobs. What changes
with each job is in the job's own record, of at most 200 bytes.
"""

from __future__ import annotations

import msgspec

from burst.decode import from_json
from burst.errors import RecordUnreadable
from burst.model.burst import Burst, JobSums, JobTimes, Lease
from burst.model.event import Event

RECORD_VERSION = 2


class BurstRecord(msgspec.Struct, frozen=True):
    """The record of a burst, without what replaying the events yields."""

    version: int
    lease: Lease
    events: tuple[Event, ...]
    sums: JobSums = JobSums()


def encode_record(burst: Burst) -> str:
    """Return the JSON text of a burst's record, without the records of its jobs."""
    record = BurstRecord(RECORD_VERSION, burst.lease, burst.events, burst.sums)
    return msgspec.json.encode(record).decode()


def decode_record(text: str) -> BurstRecord:
    """Return the record of a burst. Raises RecordUnreadable."""
    try:
        record = from_json(text, BurstRecord)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a burst record: {error}") from error
    if record.version != RECORD_VERSION:
        raise RecordUnreadable(
            f"record of version {record.version}; this program reads version"
            f" {RECORD_VERSION}",
            "run the version that wrote it",
        )
    lease = record.lease
    if not lease.isolated and len(lease.ranks) != len(lease.hosts):
        raise RecordUnreadable(
            f"not a burst record: {len(lease.hosts)} hosts, {len(lease.ranks)} ranks"
        )
    return record


def encode_job(times: JobTimes) -> str:
    """Return the JSON text of the record of one job of a burst."""
    return msgspec.json.encode(times).decode()


def decode_job(text: str) -> JobTimes:
    """Return the times of one job of a burst. Raises RecordUnreadable."""
    try:
        return from_json(text, JobTimes)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a record of a burst's job: {error}") from error
