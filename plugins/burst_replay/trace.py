# SPDX-License-Identifier: MIT
"""A workload: the jobs of some weeks or months, and the machine on which they ran."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from burst.errors import BurstError

LONGEST_S = 1e12
"""No time in a trace is as long."""
MOST_CORES = 100_000_000
"""No job has more: the largest machines there are have a tenth of it."""


class TraceError(BurstError):
    """A trace cannot be used: replay nothing."""


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job. Times are in seconds; 0 is the start of the trace."""

    submit: float
    run_time: float
    """For how long it ran; after `trace_jobs` never longer than `limit`."""
    cores: int
    limit: float
    """Its time limit; where it had none, the longest of the trace. As it was read,
    before `trace_jobs`: 0 for none."""
    userid: int = 0
    name: str = ""
    queue: str = ""
    bank: str = ""


class Machine(msgspec.Struct, frozen=True):
    """The nodes that a site owns, all alike."""

    nodes: int
    cores: int
    """Of one node, of those that are bought, too."""

    @property
    def total(self) -> int:
        """Return the number of all its cores."""
        return self.nodes * self.cores

    def nodes_for(self, cores: int) -> int:
        """Return how many nodes are bought for a job of so many cores."""
        return -(-cores // self.cores)


class SeenUse(msgspec.Struct, frozen=True):
    """What the jobs of a trace used of the machine, which had at least that."""

    cores: int = 0
    """At once."""
    nodes: int = 0
    """That are named; 0 where none are."""
    node_cores: int = 0
    """Of one node, by one job; 0 where jobs do not tell on how many nodes they ran."""

    @property
    def least(self) -> Machine:
        """Return the smallest machine on which the jobs could have run so."""
        cores = self.node_cores or 1
        return Machine(max(self.nodes, -(-self.cores // cores), 1), cores)


class LeftOut(enum.StrEnum):
    """Why a record of a file is no job of the trace; the value is its name in JSON."""

    NEVER_RAN = "never_ran"
    """It was canceled, or failed, before it started."""
    STILL_WAITED = "still_waited"
    """It had not started when the trace was written."""
    STILL_RAN = "still_ran"
    """It had started, and the trace does not tell its end."""
    ENDED_BEFORE_START = "ended_before_start"
    """The clock was set back while it ran."""
    NO_TIME = "no_time"
    """A time that is needed is not there, or cannot be read."""
    NO_CORES = "no_cores"
    """It ran, and the trace does not tell on how many cores."""
    STEP = "step"
    """It is a part of a job, which has a record of its own."""
    COMPONENT = "component"
    """Of a heterogeneous job, whose first component has the cores of all."""
    ARRAY = "array"
    """It sums up an array, whose jobs have records of their own."""
    REPEATED = "repeated"
    """The same job has another record, as where files overlap."""
    OTHER = "other"
    """It is about something else, such as a reservation, or an earlier event."""
    UNREADABLE = "unreadable"
    """It is no record of the format."""


_TOLD: Mapping[LeftOut, str] = {
    LeftOut.NEVER_RAN: "more never ran",
    LeftOut.STILL_WAITED: "left out that still waited at its end",
    LeftOut.STILL_RAN: "left out that still ran at its end",
    LeftOut.ENDED_BEFORE_START: "left out that ended before they started",
    LeftOut.NO_TIME: "left out without a time that can be read",
    LeftOut.NO_CORES: "left out without a number of cores",
    LeftOut.STEP: "steps of jobs left out",
    LeftOut.COMPONENT: "added to the first component of their heterogeneous job",
    LeftOut.ARRAY: "left out that sum up arrays",
    LeftOut.REPEATED: "left out that are there again",
    LeftOut.OTHER: "other records left out",
    LeftOut.UNREADABLE: "broken lines left out",
}


class Trace(msgspec.Struct, frozen=True):
    """What was read of a file."""

    name: str
    jobs: tuple[TraceJob, ...]
    """By when they were submitted."""
    machine: Machine | None = None
    """None where the file does not say."""
    numbers_of_host: bool = False
    """Whether its users are numbers of this host, and not made up."""
    users: Mapping[str, int] = {}
    """The numbers of its users, where it names them."""
    started: float = 0.0
    """When the trace starts, in seconds since the epoch; 0 if it does not say."""
    left_out: Mapping[LeftOut, int] = {}
    """How many records are no jobs of it, by the reason."""
    examples: Mapping[LeftOut, str] = {}
    """Where the first such record is and what is wrong with it, of some reasons."""
    seen: SeenUse = SeenUse()
    notes: tuple[str, ...] = ()
    """What all its records lack, and what was taken instead."""

    @property
    def left_out_texts(self) -> list[str]:
        """Return in words, by reason, what was left out."""
        found = []
        for reason, count in self.left_out.items():
            text = f"{count} {_TOLD[reason]}"
            if count == 1:
                text = text.replace("lines", "line").replace("steps", "step")
            if reason in self.examples:
                text += f" ({self.examples[reason]})"
            found.append(text)
        return found


def check_cores(cores: int) -> int:
    """Return a number of cores. Raises ValueError if no job can have as many."""
    if cores > MOST_CORES:
        raise ValueError(f"{cores} cores, which no machine has")
    return cores


def trace_jobs(read: list[TraceJob], started: float) -> tuple[TraceJob, ...]:
    """Return jobs by the time of submission, from `started` on.

    A job without a time limit gets the longest limit or run time of all, as many
    schedulers have it. One that ran past its limit is ended at it, as Flux does.
    """
    longest = max((max(job.limit, job.run_time) for job in read), default=0.0)
    return tuple(
        msgspec.structs.replace(
            job,
            submit=job.submit - started,
            run_time=min(job.run_time, job.limit or longest),
            limit=job.limit or longest,
        )
        for job in sorted(read, key=lambda job: job.submit)
    )
