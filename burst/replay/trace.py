# SPDX-License-Identifier: MIT
"""A workload: the jobs of some weeks or months, and the machine on which they ran."""

from __future__ import annotations

import msgspec

LONGEST_S = 1e12
"""No time in a trace is as long."""
MOST_CORES = 100_000_000
"""No job has more: the largest machines there are have a tenth of it."""


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


class Trace(msgspec.Struct, frozen=True):
    """What was read of a file."""

    name: str
    jobs: tuple[TraceJob, ...]
    """By when they were submitted."""
    machine: Machine | None = None
    """None where the file does not say."""
    numbers_of_host: bool = False
    """Whether its users are numbers of this host, and not made up."""
    started: float = 0.0
    """When the trace starts, in seconds since the epoch; 0 if it does not say."""
    broken: int = 0
    """Lines that could not be read."""
    not_run: int = 0
    """Jobs that never ran, such as those that were canceled before."""
    running: int = 0
    """Jobs that had started, and of which the trace does not tell the end."""
    backwards: int = 0
    """Jobs that ended before they started, as the clock was set back meanwhile."""
    first_broken: str = ""
    """Where the first broken line is, and what is wrong with it."""


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
