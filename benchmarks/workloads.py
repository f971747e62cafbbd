# SPDX-License-Identifier: MIT
"""Workloads of six shapes, made from seeds, and the results of policies on each.

    python -m benchmarks.workloads [TRACE ...]

prints the rows of docs/measured.md: first for the named traces, then for the shapes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from burst_replay.policies import AT_ONCE, NEVER, worth_policy
from burst_replay.read_trace import read_trace
from burst_replay.report import PolicyResult, policy_result
from burst_replay.simulator import replay
from burst_replay.site import Site
from burst_replay.trace import Machine, Trace, TraceJob

_HOUR = 3600.0
_JOBS = 5_000
_POLICIES = (NEVER, AT_ONCE, worth_policy(0.05), worth_policy(0.1), worth_policy(0.5))


class Shape(msgspec.Struct, frozen=True):
    """How jobs are drawn for a machine of 64 nodes of 16 cores."""

    nodes: Sequence[int]
    """The size of a job is drawn from these, in nodes."""
    hours: Sequence[float]
    """The time limit of a job is drawn from these; it runs for a part of the limit."""
    load: float = 0.9
    """The work of all jobs as a part of what the machine can do in their time."""
    users: int = 40
    gap: Callable[[random.Random, float], float] = lambda draw, _: draw.expovariate(1)
    """Draws the time to the next job, with a mean of about 1, at an hour of the day."""
    part: tuple[float, float] = (0.6, 1.4)
    """Parameters of a Beta distribution: the part of its limit for which a job runs."""


def _by_day(draw: random.Random, hour: float) -> float:
    """Draw a gap so that four fifths of the jobs come from 8 to 18 o'clock."""
    return draw.expovariate(1.9 if 8 <= hour < 18 else 0.35)


def _in_arrays(draw: random.Random, _: float) -> float:
    """Draw a gap so that about forty jobs come at once, then none for a long time."""
    return 0.0 if draw.random() < 0.975 else draw.expovariate(1 / 40)


SHAPES: Mapping[str, Shape] = {
    "steady": Shape(nodes=(1, 2, 4, 8), hours=(1, 4, 12)),
    "full": Shape(nodes=(1, 2, 4, 8), hours=(1, 4, 12), load=1.0),
    "by day": Shape(nodes=(1, 1, 2, 4), hours=(0.5, 1, 4), gap=_by_day),
    "arrays": Shape(nodes=(1,), hours=(0.5, 2, 6), gap=_in_arrays),
    "wide": Shape(nodes=(1, 1, 4, 32, 48), hours=(1, 2, 6), load=0.8),
    "long": Shape(nodes=(1, 2, 4), hours=(24, 72), part=(2.0, 2.0)),
}


def make(name: str, shape: Shape, seed: int = 1) -> Trace:
    """Return a trace of a shape, always the same for the same seed."""
    draw = random.Random(seed)
    machine = Machine(nodes=64, cores=16)
    nodes = sum(shape.nodes) / len(shape.nodes)
    part = shape.part[0] / sum(shape.part)
    hours = part * sum(shape.hours) / len(shape.hours)
    mean = nodes * hours * _HOUR / (shape.load * machine.nodes)
    now = 0.0
    jobs = []
    for _ in range(_JOBS):
        now += mean * shape.gap(draw, now / _HOUR % 24)
        limit = draw.choice(shape.hours) * _HOUR
        run_time = max(10.0, limit * draw.betavariate(*shape.part))
        cores = draw.choice(shape.nodes) * machine.cores
        userid = draw.randrange(shape.users)
        jobs.append(TraceJob(now, run_time, cores, limit, userid))
    return Trace(name=name, jobs=tuple(jobs), machine=machine)


def results(trace: Trace) -> dict[str, PolicyResult]:
    """Return the result of each policy on a trace, with `burst replay`'s defaults."""
    assert trace.machine is not None, f"{trace.name} does not say how large it is"
    site = Site(trace.machine)
    return {
        policy.name: policy_result(
            trace.jobs, trace.machine, replay(trace, site, policy)
        )
        for policy in _POLICIES
    }


def row(trace: Trace) -> str:
    """Return a line of the table: mean wait in minutes, and the bought share."""
    cells = [
        f"{found.mean_wait_s / 60:.3g} / {100 * found.bought_share:.2g}"
        for found in results(trace).values()
    ]
    return f"| {trace.name} | {len(trace.jobs):,} | " + " | ".join(cells) + " |"


def main(paths: Sequence[str]) -> None:
    names = [policy.name for policy in _POLICIES]
    print("| workload | jobs | " + " | ".join(names) + " |")
    print("|---|---|" + "---|" * len(names))
    for path in paths:
        print(row(read_trace(Path(path))), flush=True)
    for name, shape in SHAPES.items():
        print(row(make(name, shape)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
