# SPDX-License-Identifier: MIT
"""What the daemon keeps of an ensemble beside what its steps keep.

Three kinds of records: the file as it was given, which never changes, the state, and
for each member a book of its jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.config.convert import convert
from burst.model.burst import BurstId, Tag
from burst.model.jobid import JobId
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.record import EnsembleRecord


class KnownJob(msgspec.Struct, frozen=True, array_like=True):
    """A job of a member, and what of it was counted. Times: seconds since the epoch."""

    group: str
    """Entry of `jobs`; empty for a job that somebody else submitted for the member."""
    nodes: int
    counted: Literal["", "submit", "start", "finish"] = "submit"
    """The last of its events that is in the statistics; empty for none, as it was
    submitted and not seen since."""
    submitted: float = 0.0
    started: float = 0.0
    seen: float = 0.0
    """When the lead last showed it."""


class MemberBook(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one member's jobs, and of what its bursts have cost."""

    jobs: Mapping[JobId, KnownJob] = {}
    """Those that are active, or ended a short while ago."""
    settled: float = 0.0
    """What bursts have cost of which nothing is left."""
    settled_bursts: tuple[BurstId, ...] = ()
    """Those of them that are still on record."""
    instance: str = ""
    """Owner tag of the instance that the member is, where it is one of its own."""


class EnsembleStart(msgspec.Struct, frozen=True, kw_only=True):
    """An ensemble as it was started."""

    tables: Mapping[str, Any]
    """The file, as `spec_tables` returns it."""
    userid: int
    """Who submits its jobs."""
    environment: Mapping[str, str] = {}
    """Of its jobs."""
    slots: Mapping[str, tuple[str, ...]] = {}
    """By member: the hosts of the rank slot in which it grows and shrinks."""
    is_kept: bool = False
    """Whether it stays on record after its end, however many end later."""

    @property
    def spec(self) -> EnsembleSpec:
        """What the file says. Raises ConfigError for one of another version."""
        return convert(EnsembleSpec, self.tables, "record of an ensemble")

    def membership(self, member: str) -> Tag:
        """Return what the bursts and jobs of a member bear."""
        return Tag(f"{self.tables['name']}/{member}", self.userid)


class EnsembleState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an ensemble is."""

    record: EnsembleRecord
    refused: Mapping[str, str] = {}
    """By member: why it could not be made larger when that was last tried."""
    jobs_refused: Mapping[str, str] = {}
    """By member: why the lead did not take a job when that was last tried."""


def spec_tables(spec: EnsembleSpec) -> dict[str, Any]:
    """Return a specification as JSON has it, durations as in the file."""
    # Of its types JSON lacks durations only. Their text for people has three digits.
    found: dict[str, Any] = msgspec.to_builtins(
        spec, enc_hook=lambda value: "inf" if math.isinf(value) else f"{value + 0.0!r}s"
    )
    return found
