# SPDX-License-Identifier: MIT
"""How fast a trace is replayed, and how fast a long queue is forecast.

The trace comes from a seed: jobs of 1 to 64 cores on 1,024 cores, as busy as real
machines are. AccaSim (PyPI: accasim) runs a part of the same jobs, first come first
served with its own first fit. It has to be installed separately; without it, a message
says that the comparison is skipped.

    python benchmarks/replay.py [--json]
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from burst_replay.policies import AT_ONCE, NEVER, Policy, worth_policy
from burst_replay.simulator import replay
from burst_replay.site import Site
from burst_replay.trace import Machine, Trace, TraceJob

from benchmarks.table import Goal, Measure, main_of
from burst.core.forecast.history import RunTime
from burst.core.forecast.queue_order import (
    PendingJob,
    RunningJob,
    Scheduling,
    estimate_starts,
)
from burst.core.plan.fit import NodePool
from burst.model.jobid import JobId
from burst.model.request import ResourceRequest
from burst.model.scheduler import Order
from burst.model.shape import Shape

_MACHINE = Machine(nodes=128, cores=8)
_NODES = dict.fromkeys(range(_MACHINE.nodes), Shape(_MACHINE.cores))
_SIZES = (1, 1, 2, 4, 8, 8, 16, 32, 64)
_ACCASIM_JOBS = 3_000


def jobs(count: int, seed: int = 1) -> list[TraceJob]:
    """Return jobs of 100 users, which come about as fast as the machine runs them."""
    draw = random.Random(seed)
    made = []
    now = 0.0
    for _ in range(count):
        # One job each 100 seconds, on average 15 cores for 1.5 hours: four fifths of
        # the machine.
        now += draw.expovariate(1 / 100)
        limit = draw.choice((1, 2, 4, 8, 12)) * 3600.0
        run_time = max(1.0, round(limit * draw.betavariate(0.5, 1.5)))
        cores = draw.choice(_SIZES)
        made.append(
            TraceJob(round(now), run_time, cores, limit, userid=draw.randrange(100))
        )
    return made


def rate(jobs: Sequence[TraceJob], policy: Policy, order: Order = Order.EASY) -> float:
    """Return the jobs replayed per second of CPU time of this process."""
    trace = Trace("made of a seed", tuple(jobs))
    return len(jobs) / _seconds(lambda: replay(trace, Site(_MACHINE, order), policy))


def forecast_seconds(count: int, order: Order) -> float:
    """Return the CPU seconds of one forecast of `count` pending jobs."""
    draw = random.Random(2)

    def run_time() -> RunTime:
        hours = draw.expovariate(1 / 3600)
        return RunTime(hours / 2, hours, hours * 4)

    needs: dict[int, tuple[ResourceRequest, None]] = {
        cores: (ResourceRequest(nodes=0, slots=cores, cores_per_slot=1), None)
        for cores in _SIZES
    }
    room = NodePool(_NODES, _NODES)
    running: list[RunningJob] = []
    while share := room.fit(*needs[draw.choice(_SIZES)]):
        room.take_shares(share)
        running.append(RunningJob(JobId(1 + len(running)), share, run_time()))
    waiting = [
        PendingJob(JobId(1000 + number), needs[cores], cores, run_time())
        for number, cores in enumerate(draw.choices(_SIZES, k=count))
    ]
    scheduling = Scheduling(order)
    return min(
        _seconds(lambda: estimate_starts(0.0, room, running, waiting, scheduling))
        for _ in range(3)
    )


def accasim_rate(trace: Sequence[TraceJob]) -> float:
    """Return the jobs that AccaSim runs per second of CPU time."""
    # AccaSim 1.1.3 is older than Python 3.10, which removed this name.
    vars(collections).setdefault("Mapping", Mapping)
    simulator = importlib.import_module("accasim.base.simulator_class").Simulator
    fifo = importlib.import_module("accasim.base.scheduler_class").FirstInFirstOut
    first_fit = importlib.import_module("accasim.base.allocator_class").FirstFit
    with tempfile.TemporaryDirectory() as scratch:
        workload = Path(scratch, "trace.swf")
        workload.write_text("".join(_swf_line(*each) for each in enumerate(trace, 1)))
        config = Path(scratch, "system.json")
        config.write_text(
            json.dumps(
                {
                    "groups": {"node": {"core": _MACHINE.cores, "mem": 1}},
                    "resources": {"node": _MACHINE.nodes},
                }
            )
        )
        # AccaSim prints progress, but the output of this program may be JSON.
        with contextlib.redirect_stdout(io.StringIO()):
            made = simulator(
                str(workload),
                str(config),
                fifo(first_fit()),
                RESULTS_FOLDER_PATH=scratch,
                RESULTS_FOLDER_NAME="results",
            )
            spent = _seconds(made.start_simulation)
    return len(trace) / spent


def _swf_line(number: int, job: TraceJob) -> str:
    used = f"{job.submit:.0f} 0 {job.run_time:.0f} {job.cores} -1 -1"
    return f"{number} {used} {job.cores} {job.limit:.0f} -1 1 1 1 1 1 -1 -1 -1\n"


def _seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def measure() -> list[Measure]:
    """Return all measures."""
    trace = jobs(100_000)
    found = []
    for policy, goal in ((NEVER, 3), (AT_ONCE, 3), (worth_policy(0.1), 10)):
        spent = len(trace) / rate(trace, policy)
        found.append(
            Measure(f"100,000 jobs, {policy.name}", spent, "s", Goal("<", goal))
        )
    for order, most in ((Order.FIFO, 0.5), (Order.EASY, 1.0)):
        spent = forecast_seconds(10_000, order)
        name = f"10,000 pending jobs forecast, {order}"
        found.append(Measure(name, spent, "s", Goal("<", most)))
    if importlib.util.find_spec("accasim") is None:
        print("not compared with AccaSim: pip install accasim", file=sys.stderr)
        return found
    part = trace[:_ACCASIM_JOBS]
    theirs = accasim_rate(part)
    ours = rate(part, NEVER, Order.FIFO) / theirs
    found.append(Measure("AccaSim, first come first served", theirs, "jobs/s"))
    found.append(Measure("the same jobs here", ours, "x", Goal(">=", 20)))
    return found


if __name__ == "__main__":
    main_of(__doc__, measure)
