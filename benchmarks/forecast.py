# SPDX-License-Identifier: MIT
"""How much CPU time a forecast of the starts of 10,000 pending jobs takes.

One pass is timed alone. Then the ticks of benchmarks/waiting.py are timed while passes
run without a pause in another thread, as if each found something new. The daemon pauses
after each pass for twenty times its duration.

    python benchmarks/forecast.py [--json]
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.table import Goal, Measure, main_of
from benchmarks.waiting import Still, waiting
from burst.core.forecast.forecast import forecast, own_nodes_queue
from burst.core.forecast.history import JobKind, RunHistory
from burst.core.records import Records
from burst.model.active_job import ActiveJob, picture_of
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.shape import Shape
from tests.builders import T0, slots, view, world
from tests.sim import Sim

JOBS = 10_000
PASS_GOAL_S = 0.5
TICK_GOAL_S = 0.05
PASSES = 5
TICKS = 40
LIMIT_S = 600.0


def queue() -> list[ActiveJob]:
    """Return a job that has all own cores, and all jobs that wait behind it."""
    asks: dict[str, Any] = {"userid": 1, "priority": 16, "duration": LIMIT_S}
    jobs = [
        ActiveJob(
            id=JobId(number),
            name=f"member-{number % 200}",
            state=JobState.SCHED,
            request=slots(1 + number % 4),
            **asks,
        )
        for number in range(2, JOBS + 2)
    ]
    runs: dict[str, Any] = {
        "state": JobState.RUN,
        "t_start": T0 - 5.0,
        "taken": {0: Shape(2), 1: Shape(2)},
    }
    return [
        ActiveJob(id=JobId(1), name="first", request=slots(4), **asks, **runs),
        *jobs,
    ]


def history() -> RunHistory:
    """Return a history of run times of such jobs."""
    known = RunHistory()
    for number in range(2000):
        kind = JobKind(1, f"member-{number % 200}", 1 + number % 4)
        known.add(kind, 100.0 + number % 77, LIMIT_S)
    return known


def passes() -> Callable[[], None]:
    """Return a function that makes one pass, as the forecaster does."""
    jobs, known, seen = queue(), history(), world(view())

    def one() -> None:
        own = own_nodes_queue(Records(), seen)
        made = forecast(picture_of(jobs), own, known, T0)
        assert len(made.starts) == JOBS

    return one


def time_pass(one: Callable[[], None]) -> float:
    """Return the CPU seconds of a pass: the least of several."""
    times = []
    for _ in range(PASSES):
        began = time.process_time()
        one()
        times.append(time.process_time() - began)
    return min(times)


def time_ticks(sim: Sim) -> list[float]:
    """Return the seconds of ticks in which nothing happens, sorted."""
    times = []
    for _ in range(TICKS):
        sim.now += 1
        began = time.perf_counter()
        sim.engine.tick(sim.now)
        times.append(time.perf_counter() - began)
        time.sleep(0.01)
    return sorted(times)


def time_disturbed(sim: Sim, one: Callable[[], None]) -> list[float]:
    """Return the seconds of such ticks while passes run without a pause, sorted."""
    going = True

    def repeat() -> None:
        while going:
            one()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        return time_ticks(sim)
    finally:
        going = False
        thread.join()


def measure() -> list[Measure]:
    """Return all measures."""
    logging.getLogger("burst").setLevel(logging.ERROR)
    one = passes()
    sim = waiting("hold", JOBS)
    assert isinstance(sim.lead, Still)
    sim.lead.seen = sim.lead.observe()
    time_ticks(sim)
    alone, disturbed = time_ticks(sim), time_disturbed(sim, one)
    goal = Goal("<", TICK_GOAL_S * 1e3)
    return [
        Measure(
            f"one pass over {JOBS:,} pending jobs, CPU",
            time_pass(one),
            "s",
            Goal("<", PASS_GOAL_S),
        ),
        Measure("a tick alone, p50", statistics.median(alone) * 1e3, "ms"),
        Measure(
            "a tick beside passes, p50", statistics.median(disturbed) * 1e3, "ms", goal
        ),
        Measure("the same, p95", disturbed[int(0.95 * TICKS)] * 1e3, "ms"),
    ]


if __name__ == "__main__":
    main_of(__doc__, measure)
