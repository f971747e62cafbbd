# SPDX-License-Identifier: MIT
"""Own nodes for tests of the simulated queue: one node of many cores."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from burst.core.forecast.conservative import End, Waiting
from burst.core.plan.fit import NodePool
from burst.model.jobid import JobId
from burst.model.shape import Shape
from tests.builders import slots

NOW = 1000.0
Jobs = Sequence[tuple[int, float]]
"""Jobs as cores and seconds."""


def one_node(free: int) -> NodePool:
    """A node with so many free cores."""
    return NodePool({0: Shape(free)}, {0: Shape(1000)})


def share(cores: int) -> dict[int, Shape]:
    """Cores of it."""
    return {0: Shape(cores)}


@cache
def need(cores: int) -> tuple[Any, ...]:
    """What a job needs that asks for so many cores."""
    return slots(cores), None


def running_on(jobs: Jobs, first: int = 1) -> list[End]:
    """Ends of jobs on it, with ids from `first` on."""
    return sorted(
        End(NOW + seconds, number, JobId(number), share(cores))
        for number, (cores, seconds) in enumerate(jobs, first)
    )


def waits(cores: int, seconds: float, *asked: Any) -> Waiting:
    """A job for so many cores, or for a request and the ranks that are admitted."""
    asked = (*asked, None)[:2] if asked else need(cores)
    return Waiting(asked, cores, float(seconds))
