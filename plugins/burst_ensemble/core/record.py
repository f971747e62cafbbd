# SPDX-License-Identifier: MIT
"""The records of an ensemble: how it was started, and its progress.

A step takes the record and returns the next one, which is written before any of the
step's intents is done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.model.burst import BurstId, Tag
from burst.model.jobid import JobId
from burst_ensemble.algorithm import JobTally
from burst_ensemble.config.spec import EnsembleSpec, MemberSpec
from burst_ensemble.core.intents import JobRef


class KnownJob(msgspec.Struct, frozen=True, array_like=True):
    """A job of a member and its counted events. Times: seconds since the epoch."""

    group: str
    """Entry of `jobs`; empty for a job that somebody else submitted for the member."""
    nodes: int
    counted: Literal["", "submit", "start", "finish"] = "submit"
    """The last of its events that is in the statistics; empty for none, because it was
    submitted and not read since."""
    submitted: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    """When its end was counted."""


KNOWN_MOST = 5000
"""How many jobs a member's record may have before it gets no further ones. Each takes
at most 160 bytes of a value, and a store takes MAX_VALUE_BYTES."""


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a member. Times are seconds since the epoch."""

    started: float
    nodes: int = 0
    """The size that was decided last."""
    grown: float | None = None
    shrunk: float | None = None
    memory: Mapping[str, Mapping[str, Any]] = {}
    """What each algorithm remembers, by its name."""
    submitted: Mapping[str, int] = {}
    """How many jobs were given to it, by its own groups; the next job gets this number.
    """
    unconfirmed: tuple[JobRef, ...] = ()
    """Jobs that are on record and may not be submitted yet."""
    commands: int = 0
    """How many commands it was given so far."""
    unconfirmed_commands: tuple[tuple[int, str], ...] = ()
    """Number and name of commands that may not be started yet."""
    jobs: Mapping[JobId, KnownJob] = {}
    """Jobs that are active, or ended a short while ago; little more than KNOWN_MOST.
    """
    statistics: Mapping[str, JobTally] = {}
    """The tally of each group; that of "" is for jobs without a group."""
    total: JobTally = JobTally()
    """The tally of all its jobs; of an external member, those with a group."""
    settled: float = 0.0
    """The cost of its bursts that are gone."""
    settled_bursts: tuple[BurstId, ...] = ()
    """The bursts counted in `settled` that are still on record."""
    instance: str = ""
    """Owner tag of the instance of an external member; empty before the first report.
    """
    spent: float = 0.0
    """Its cost at the last reading."""
    paid: int = 0
    """Nodes that cost money at the last reading, including those that are given back.
    """
    leaving: int = 0
    """How many nodes in `paid` were being given back."""
    fault: str = ""
    """Why the decisions of its algorithms are not taken: one of them failed."""
    limited: str = ""
    """Which limit leaves it fewer nodes than it wants; empty if none does."""
    refused: str = ""
    """Why the last attempt to make it larger or to submit a job failed; empty if it did
    not."""
    never_taken: str = ""
    """Why the lead will never accept the last of the jobs that it does not; empty if
    there is none."""
    why: str = ""
    """The reason of the last change, or of the end."""
    ended: float | None = None
    """When it was decided that it ends, for good; None while it runs."""

    @property
    def waits_with_jobs(self) -> str:
        """Why it gets no further jobs now; empty if it does. It bounds the record."""
        if self.unconfirmed:
            return "earlier jobs are not submitted yet"
        return self.has_most_jobs

    @property
    def has_most_jobs(self) -> str:
        """How many jobs it has if it may have no more; empty if it may."""
        if len(self.jobs) < KNOWN_MOST:
            return ""
        return f"{len(self.jobs)} jobs are active or ended in the last five minutes"


class EnsembleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an ensemble."""

    name: str
    started: float
    members: Mapping[str, MemberRecord] = {}
    shared: Mapping[str, int] = {}
    """How many jobs were given to members, by shared group."""
    ended: float | None = None
    why: str = ""
    """The reason of the end."""

    @property
    def spent(self) -> float:
        """The cost of all members."""
        return sum(member.spent for member in self.members.values())

    def with_members(self, changed: Mapping[str, MemberRecord]) -> EnsembleRecord:
        """Return the record with these members replaced."""
        return msgspec.structs.replace(self, members={**self.members, **changed})

    def with_member(self, name: str, **changes: object) -> EnsembleRecord:
        """Return the record with these fields of a member changed."""
        changed = msgspec.structs.replace(self.members[name], **changes)
        return self.with_members({name: changed})


class EnsembleStart(msgspec.Struct, frozen=True, kw_only=True):
    """An ensemble as it was started; it never changes."""

    spec: EnsembleSpec
    userid: int
    """The user who submits its jobs."""
    environment: Mapping[str, str] = {}
    """The environment variables of its jobs."""
    slots: Mapping[str, tuple[str, ...]] = {}
    """By member: the hosts of the rank slot in which it grows and shrinks."""
    is_kept: bool = False
    """Whether its record is never dropped after its end, so that the daemon, which
    starts it from a file, starts it only once."""


class Ensemble(msgspec.Struct, frozen=True):
    """One ensemble that is on record."""

    start: EnsembleStart
    record: EnsembleRecord

    @property
    def members(self) -> list[Member]:
        """Its members, in the order of the file."""
        return [Member(self, spec.name) for spec in self.start.spec.members]


class Member(msgspec.Struct, frozen=True):
    """One member of an ensemble that is on record."""

    ensemble: Ensemble
    name: str

    @property
    def key(self) -> str:
        """The member's name in the form ENSEMBLE/MEMBER."""
        return f"{self.ensemble.record.name}/{self.name}"

    @property
    def spec(self) -> MemberSpec:
        """Its table in the file."""
        return self.ensemble.start.spec.member(self.name)

    @property
    def record(self) -> MemberRecord:
        """Its progress."""
        return self.ensemble.record.members[self.name]

    @property
    def tag(self) -> Tag:
        """The tag of its bursts and jobs."""
        return Tag(self.key, self.ensemble.start.userid)


EnsembleRecords = Mapping[str, Ensemble]
"""The ensembles that run and the last that ended, by name."""


def plain_duration(value: float) -> str:
    """Return a duration as text for JSON, with all digits.

    It is the only type of the records that JSON lacks. The text for people has three
    digits.
    """
    return "inf" if math.isinf(value) else f"{value + 0.0!r}s"


def spec_tables(spec: EnsembleSpec) -> dict[str, Any]:
    """Return a specification as JSON values, with durations as in the file."""
    found: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=plain_duration)
    return found
