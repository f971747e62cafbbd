# SPDX-License-Identifier: MIT
"""What a tick wants done, as values. `burst.runtime` carries them out."""

from __future__ import annotations

import msgspec

from burst.model.burst import BurstId
from burst.model.jobid import JobId


class ProvisionBurst(msgspec.Struct, frozen=True):
    """Have the provider begin, or go on. The intent is on record by then."""

    burst: BurstId


class ReapBurst(msgspec.Struct, frozen=True):
    """Have the provider delete it. Nothing runs on its ranks, nor can start there."""

    burst: BurstId


class DrainBurst(msgspec.Struct, frozen=True):
    """Have no new job start on these ranks of ours."""

    ranks: frozenset[int]
    reason: str


class UndrainBurst(msgspec.Struct, frozen=True):
    """Let jobs start again on ranks that we drained."""

    burst: BurstId
    ranks: frozenset[int]


class HoldJobs(msgspec.Struct, frozen=True):
    """Set urgency 0. What it was before is on record by then."""

    jobs: tuple[JobId, ...]


class ReleaseJobs(msgspec.Struct, frozen=True):
    """Give jobs an urgency back."""

    urgencies: dict[JobId, int]


class MoveJobs(msgspec.Struct, frozen=True):
    """Put jobs into other queues; each name is where the job goes."""

    queues: dict[JobId, str]


class FailJob(msgspec.Struct, frozen=True):
    """Raise a fatal exception on a job that nothing can ever help."""

    job: JobId
    reason: str


class EndJob(msgspec.Struct, frozen=True):
    """Tell a held job what came of it elsewhere, then end it here."""

    job: JobId
    memo: dict[str, str]
    reason: str


Action = (
    ProvisionBurst
    | ReapBurst
    | DrainBurst
    | UndrainBurst
    | HoldJobs
    | ReleaseJobs
    | MoveJobs
    | FailJob
    | EndJob
)
