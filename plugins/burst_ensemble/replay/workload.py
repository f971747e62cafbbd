# SPDX-License-Identifier: MIT
"""What an ensemble runs in simulation: a trace, or jobs that are drawn of a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from burst_replay.trace import Trace

from burst_ensemble.config.spec import JobSpec
from burst_ensemble.core.intents import JobRef
from burst_ensemble.replay.member import SimulatedJob
from burst_ensemble.replay.simulator import Arrival

_UNLIMITED_S = 1200.0
_SIZES = (1, 1, 1, 2, 2, 4)


def arrivals_of(trace: Trace, cores: int) -> list[Arrival]:
    """Return the jobs of a trace, on whole nodes of so many cores."""
    return [
        Arrival(job.submit, -(-job.cores // cores), job.run_time) for job in trace.jobs
    ]


def drawn_arrivals(hours: float, per_hour: float, seed: int) -> list[Arrival]:
    """Return jobs whose rate rises to its double and falls to nothing, twice, in so
    many hours; `per_hour` is the mean.
    """
    draw = random.Random(seed)  # noqa: S311  no secret is made of it
    found: list[Arrival] = []
    at, length = 0.0, hours * 3600
    while True:
        at += draw.expovariate(2 * per_hour / 3600)
        if at >= length:
            return found
        # Thinning (Lewis and Shedler, 1979): of the highest rate the part that is now.
        if draw.random() < (1 - math.cos(4 * math.pi * at / length)) / 2:
            run_time = draw.lognormvariate(math.log(600), 0.8)
            found.append(Arrival(at, draw.choice(_SIZES), round(run_time, 1)))


def drawn_job(seed: int, failures: float) -> Callable[[JobSpec, JobRef], SimulatedJob]:
    """Return a function that draws how long a job of the file runs: from a tenth of its
    limit, or of 20 minutes, to all of it. `failures` is the part that fails.
    """

    def make(job: JobSpec, ref: JobRef) -> SimulatedJob:
        draw = random.Random(f"{seed} {ref.group} {ref.number}")  # noqa: S311
        limit = float(job.duration) or _UNLIMITED_S
        run_time = round(limit * draw.uniform(0.1, 1.0), 1)
        return SimulatedJob(job.name, job.nodes, run_time, draw.random() >= failures)

    return make
