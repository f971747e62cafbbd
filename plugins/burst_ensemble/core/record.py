# SPDX-License-Identifier: MIT
"""What is kept of an ensemble: how it was started, and how far it is.

A step takes the record and returns the next one, which is written before any of the
step's intents is done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from burst.core.tagged_nodes import TaggedNodes
from burst.model.burst import BurstId, Tag
from burst.model.jobid import JobId
from burst_ensemble.algorithm import JobTally
from burst_ensemble.config.spec import EnsembleSpec, MemberSpec
from burst_ensemble.core.intents import JobRef


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a member's algorithm is not asked: it raised, or was too slow."""

    what: str
    first: float
    """When it began."""
    until: float
    """It is asked again from then on; the member stays as it is before."""


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


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a member. Times are seconds since the epoch."""

    started: float
    nodes: int = 0
    """How many it is to have."""
    grown: float | None = None
    shrunk: float | None = None
    memory: Mapping[str, Mapping[str, Any]] = {}
    """What each algorithm remembers, by its name."""
    submitted: Mapping[str, int] = {}
    """Jobs that were given out of its own groups; the next gets this number."""
    unconfirmed: tuple[JobRef, ...] = ()
    """Jobs that are on record and may not be submitted yet."""
    commands: int = 0
    """Commands that were asked for so far."""
    unconfirmed_commands: tuple[tuple[int, str], ...] = ()
    jobs: Mapping[JobId, KnownJob] = {}
    """Those that are active, or ended a short while ago."""
    statistics: Mapping[str, JobTally] = {}
    """By group."""
    total: JobTally = JobTally()
    """Of all its jobs; of an external member, of those of groups."""
    settled: float = 0.0
    """What bursts have cost of which nothing is left."""
    settled_bursts: tuple[BurstId, ...] = ()
    """Those of them that are still on record."""
    instance: str = ""
    """Owner tag of the instance that it is, where it is one of its own."""
    spent: float = 0.0
    """As it was read last."""
    paid: int = 0
    """Nodes that were paid as it was read last, those that are given back, too."""
    leaving: int = 0
    """Those of them that were being given back."""
    trouble: Trouble | None = None
    limited: str = ""
    """Which limit leaves it fewer nodes than it wants; empty if none does."""
    refused: str = ""
    """Why it could not be made larger, or a job was not taken, when that was last
    tried."""
    why: str = ""
    """Of the last change, or of the end."""
    ended: float | None = None
    """When it was decided that it ends, for good."""


class EnsembleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How far an ensemble is."""

    name: str
    started: float
    members: Mapping[str, MemberRecord] = {}
    shared: Mapping[str, int] = {}
    """Jobs that were given out of groups that all members share."""
    ended: float | None = None
    why: str = ""
    """Of the end."""

    @property
    def spent(self) -> float:
        """What all members have cost."""
        return sum(member.spent for member in self.members.values())

    def with_members(self, changed: Mapping[str, MemberRecord]) -> EnsembleRecord:
        """Return it with these members in the place of those that it has."""
        return msgspec.structs.replace(self, members={**self.members, **changed})

    def with_member(self, name: str, **changes: object) -> EnsembleRecord:
        """Return it with these fields of a member changed."""
        changed = msgspec.structs.replace(self.members[name], **changes)
        return self.with_members({name: changed})


class EnsembleStart(msgspec.Struct, frozen=True, kw_only=True):
    """An ensemble as it was started; it never changes."""

    spec: EnsembleSpec
    userid: int
    """Who submits its jobs."""
    environment: Mapping[str, str] = {}
    """Of its jobs."""
    slots: Mapping[str, tuple[str, ...]] = {}
    """By member: the hosts of the rank slot in which it grows and shrinks."""
    is_kept: bool = False
    """Whether it stays on record after its end, however many end later: the daemon
    starts it, and once."""


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
        """Return it as ENSEMBLE/MEMBER."""
        return f"{self.ensemble.record.name}/{self.name}"

    @property
    def spec(self) -> MemberSpec:
        """What the file says of it."""
        return self.ensemble.start.spec.member(self.name)

    @property
    def record(self) -> MemberRecord:
        """How far it is."""
        return self.ensemble.record.members[self.name]

    @property
    def tag(self) -> Tag:
        """What its bursts and jobs bear."""
        return Tag(self.key, self.ensemble.start.userid)


EnsembleRecords = Mapping[str, Ensemble]
"""Those that run, and the last that ended, by name."""


class Seen(NamedTuple):
    """What a decision or an answer about ensembles rests on."""

    ensembles: EnsembleRecords
    nodes: TaggedNodes
    """What the daemon tells of bursts and jobs."""
    now: float
    """Seconds since the epoch."""


def plain_duration(value: float) -> str:
    """Return a duration as JSON has it: of our types JSON lacks these only.

    Their text for people has three digits.
    """
    return "inf" if math.isinf(value) else f"{value + 0.0!r}s"


def spec_tables(spec: EnsembleSpec) -> dict[str, Any]:
    """Return a specification as JSON has it, durations as in the file."""
    found: dict[str, Any] = msgspec.to_builtins(spec, enc_hook=plain_duration)
    return found
