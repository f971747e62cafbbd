# SPDX-License-Identifier: MIT
"""What a tick decides to do, as values; `burst.runtime` does it."""

from __future__ import annotations

import msgspec

from burst.model.burst import BurstId
from burst.model.jobid import JobId


class ProvisionBurst(msgspec.Struct, frozen=True):
    """Call `provision` of the provider. That it is called is on record by then."""

    burst: BurstId


class ReapBurst(msgspec.Struct, frozen=True):
    """Call `reap` of the provider. Nothing runs on its ranks, nor can start there."""

    burst: BurstId


class ResizeBurst(msgspec.Struct, frozen=True):
    """Call `resize` of the provider for the nodes that the burst is to have.

    That they change is on record by then, and nothing runs on nodes that leave.
    """

    burst: BurstId


class DrainBurst(msgspec.Struct, frozen=True):
    """Drain ranks of a burst, so that no new job starts there."""

    ranks: frozenset[int]
    reason: str


class UndrainBurst(msgspec.Struct, frozen=True):
    """Undrain ranks that were drained for a burst."""

    burst: BurstId
    ranks: frozenset[int]


class UndrainRanks(msgspec.Struct, frozen=True):
    """Undrain ranks that no burst has, which Flux drained during a lease."""

    ranks: frozenset[int]


class EndHousekeeping(msgspec.Struct, frozen=True):
    """Send housekeeping on these ranks a signal."""

    ranks: frozenset[int]
    signum: int


class HoldJobs(msgspec.Struct, frozen=True):
    """Set urgency 0. What it was before is on record by then."""

    jobs: tuple[JobId, ...]


class ReleaseJobs(msgspec.Struct, frozen=True):
    """Give jobs an urgency back."""

    urgencies: dict[JobId, int]


class MoveJobs(msgspec.Struct, frozen=True):
    """Move jobs to other queues; each name is the queue that the job goes to."""

    queues: dict[JobId, str]
    lent: dict[JobId, frozenset[int]] = {}
    """Those of them that are confined, each to these lent ranks."""


class ConfineJobs(msgspec.Struct, frozen=True):
    """Let each job run on own nodes and on these lent ranks only."""

    lent: dict[JobId, frozenset[int]]


class FailJob(msgspec.Struct, frozen=True):
    """Raise a fatal exception on a job that no offer could ever serve."""

    job: JobId
    reason: str


class EndJob(msgspec.Struct, frozen=True):
    """Write the result of a job that an isolated burst ran to its memo, and end it."""

    job: JobId
    memo: dict[str, str]
    reason: str
    """Of the exception that ends it where it gets no exit status."""
    exit_status: int | None = None
    """None where it is not known whether it ran."""
    output: str = ""


class TellJobs(msgspec.Struct, frozen=True):
    """Write a memo to jobs that run."""

    jobs: tuple[JobId, ...]
    memo: dict[str, str]


class RepeatJob(msgspec.Struct, frozen=True):
    """Submit a job again that lost a node. What is asked for is on record by then."""

    job: JobId


FREEING = (ReapBurst, DrainBurst, UndrainBurst)
"""What may be done although it is not on record. After a crash it is found: by what the
provider shows no more, and by the reason of a drain."""
Action = (
    ProvisionBurst
    | ReapBurst
    | ResizeBurst
    | DrainBurst
    | UndrainBurst
    | UndrainRanks
    | EndHousekeeping
    | HoldJobs
    | ReleaseJobs
    | MoveJobs
    | ConfineJobs
    | FailJob
    | EndJob
    | TellJobs
    | RepeatJob
)
