# SPDX-License-Identifier: MIT
"""A trace: the jobs of some weeks or months, and the machine on which they ran."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from burst.errors import BurstError

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})
MOST_CORES = 100_000_000
"""The most cores of a job: the largest machines have a tenth of it."""


class TraceError(BurstError):
    """A trace cannot be used, so nothing is replayed."""


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job. Times are in seconds; 0 is the start of the trace."""

    submit: float
    run_time: float
    """How long it ran; never longer than `limit`."""
    cores: int
    limit: float
    """Its time limit; if it had none, the longest of the trace."""
    userid: int = 0
    name: str = ""
    queue: str = ""
    bank: str = ""
    limited: bool = True
    """Whether the job had a time limit."""
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    """Those that rules may match, as `JobFacts.attributes`."""


class Machine(msgspec.Struct, frozen=True):
    """The nodes that a site owns, all alike."""

    nodes: int
    cores: int
    """Cores of one node; bought nodes have as many."""

    @property
    def total(self) -> int:
        """Return the number of all its cores."""
        return self.nodes * self.cores

    def nodes_for(self, cores: int) -> int:
        """Return how many nodes are bought for a job of `cores` cores."""
        return -(-cores // self.cores)


class LeftOut(enum.StrEnum):
    """Why a record of a file is not a job of the trace; docs/replay.md explains each.

    They are told in this order.
    """

    NEVER_RAN = enum.auto()
    STILL_WAITED = enum.auto()
    STILL_RAN = enum.auto()
    ENDED_BEFORE_START = enum.auto()
    NO_TIME = enum.auto()
    NO_CORES = enum.auto()
    STEP = enum.auto()
    COMPONENT = enum.auto()
    ARRAY = enum.auto()
    REPEATED = enum.auto()
    OTHER = enum.auto()
    UNREADABLE = enum.auto()


class Trace(msgspec.Struct):
    """The contents of a trace file."""

    name: str
    jobs: tuple[TraceJob, ...] = ()
    """The jobs in the order of their submission."""
    machine: Machine | None = None
    """The machine on which it was recorded; None if the file does not say."""
    numbers_of_host: bool = False
    """Whether its user numbers are those of this host, and not made up."""
    users: dict[str, int] = {}
    """The numbers of its users by name; empty if the file has no names."""
    has_attributes: bool = False
    """Whether it has the attributes of its jobs."""
    started: float = 0.0
    """When the trace starts, in seconds since the epoch; 0 if it does not say."""
    left_out: dict[LeftOut, int] = {}
    """How many records are not jobs of the trace, by reason."""
    examples: dict[LeftOut, str] = {}
    """For some reasons: where the first such record is, and what is wrong with it."""
    node_cores: int = 1
    """The most cores that a job had on one node, as far as the file says."""
    notes: tuple[str, ...] = ()
    """What all its records lack, and what was used instead."""

    @property
    def left_out_text(self) -> str:
        """Return the counts of `left_out`, with examples; empty if there are none."""
        examples = {why: f" ({text})" for why, text in self.examples.items()}
        told = [f"{n} {why}{examples.get(why, '')}" for why, n in self.left_out.items()]
        return f"left out: {', '.join(told)}" if told else ""
