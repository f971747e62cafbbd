# SPDX-License-Identifier: MIT
"""The actions that a tick decides on, as values; `burst.runtime` carries them out."""

from __future__ import annotations

import msgspec

from burst.model.burst import BurstId
from burst.model.jobid import JobId


class ProvisionBurst(msgspec.Struct, frozen=True):
    """Call `provision` of the provider. The call is on record before."""

    burst: BurstId


class ReapBurst(msgspec.Struct, frozen=True):
    """Call `reap` of the provider. Nothing runs or can start on the burst's ranks."""

    burst: BurstId


class ResizeBurst(msgspec.Struct, frozen=True):
    """Call `resize` of the provider with the new nodes of the burst.

    The change is on record before, and nothing runs on nodes that leave.
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
    """Undrain ranks that Flux drained during a lease and that no burst leases now."""

    ranks: frozenset[int]


class EndHousekeeping(msgspec.Struct, frozen=True):
    """Send a signal to housekeeping on these ranks."""

    ranks: frozenset[int]
    signum: int


class HoldJobs(msgspec.Struct, frozen=True):
    """Set the urgency of jobs to 0. Their urgency is on record before."""

    jobs: tuple[JobId, ...]


class ReleaseJobs(msgspec.Struct, frozen=True):
    """Give jobs their urgency back."""

    urgencies: dict[JobId, int]


class MoveJobs(msgspec.Struct, frozen=True):
    """Move jobs to other queues; `queues` has the new queue of each job."""

    queues: dict[JobId, str]
    lent: dict[JobId, frozenset[int]] = {}
    """The lent ranks to which some of the jobs are confined."""


class ConfineJobs(msgspec.Struct, frozen=True):
    """Restrict each job to own nodes and to these lent ranks."""

    lent: dict[JobId, frozenset[int]]


class FailJob(msgspec.Struct, frozen=True):
    """Raise a fatal exception on a job that no offer could ever serve."""

    job: JobId
    reason: str


class CancelJob(msgspec.Struct, frozen=True):
    """Cancel a job whose nodes will not come, as somebody ended what it waits for."""

    job: JobId
    reason: str


class EndJob(msgspec.Struct, frozen=True):
    """Write the result of a job that an isolated burst ran to its memo, and end it."""

    job: JobId
    memo: dict[str, str]
    reason: str
    """The note of the exception that ends the job if it gets no exit status."""
    exit_status: int | None = None
    """None if it is not known whether the job ran."""
    output: str = ""


class TellJobs(msgspec.Struct, frozen=True):
    """Write a memo to running jobs."""

    jobs: tuple[JobId, ...]
    memo: dict[str, str]


class RepeatJob(msgspec.Struct, frozen=True):
    """Submit a job again that lost a node. The request is on record before."""

    job: JobId


FREEING = (ReapBurst, DrainBurst, UndrainBurst)
"""Actions that may be carried out although they are not on record. After a crash their
effect is found: the provider shows a burst no more, a drain has the daemon's reason."""
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
    | CancelJob
    | EndJob
    | TellJobs
    | RepeatJob
)
