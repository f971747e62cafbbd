# SPDX-License-Identifier: MIT
"""What is free on own nodes, and the jobs that run there, for a simulated queue."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

from burst.model.jobid import JobId

NO_JOB = JobId(0)

Start = tuple[float, JobId]
"""When a job starts, and the running job whose end lets it start, 0 for none."""
NEVER: Start = (float("inf"), NO_JOB)


class OwnRoom(Protocol):
    """What is free at one time. `NodePool` is such a room, node by node.

    Each kind of room has its own types for what a job needs and for the share that it
    gets: in `NodePool` a request with the ranks that it may have, and a shape by rank.
    """

    cores: int
    """How many cores are free, all together."""

    def fit(self, *need: Any, **_: Any) -> Any:
        """Return the share that a job would get, which is false if it does not fit."""

    def take_shares(self, share: Any, /) -> None:
        """Take a share."""

    def give_shares(self, share: Any, /) -> None:
        """Give back what was taken."""

    def copy(self) -> Self:
        """Return a copy, which can be changed without changing this room."""

    def within(self, other: Any, /) -> Self:
        """Return the room for what has to fit into both."""


class End(NamedTuple):
    """The end of a running job."""

    at: float
    number: int
    """Tells ends at the same time apart."""
    job: JobId
    """The running job that is waited for: this one, or the one that it waited for."""
    share: Any


class Waiting(NamedTuple):
    """A job that waits, with the facts that matter to when jobs start."""

    need: tuple[Any, ...]
    """The same object for jobs that need the same, so that these are tried once."""
    cores: int
    """The least number of cores that it takes."""
    run_time: float
