# SPDX-License-Identifier: MIT
"""The longest tick while 10,000 pending jobs are forecast and judged.

The engine has a fake lead whose own nodes are busy, and 10,000 jobs that could run on
them. The settings are loaded again, so that all jobs are judged again; with rules,
forecasts also come and go. The measure is the CPU time of the tick's thread, for all of
a tick except reading the lead.

    python benchmarks/judging.py [--json]
"""

from __future__ import annotations

import copy
import logging
import time
from typing import cast

import msgspec

from benchmarks.forecast import PASSES, history, queue
from benchmarks.table import Goal, Measure, main_of
from benchmarks.waiting import Still
from burst.core.forecast.forecast import forecast, own_nodes_queue
from burst.core.plan.estimate import StartEstimate
from burst.model.active_job import picture_of
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.runtime.engine import Engine
from burst.runtime.engine_config import EngineConfig
from burst.runtime.forecast_pass import (
    Forecasts,
    Judged,
    Line,
    PassInputs,
    bursts_assumed,
)
from burst.runtime.forecaster import Forecaster
from burst.runtime.session import relax_garbage_collector
from burst.runtime.side_threads import SideThreads
from tests.builders import whole
from tests.sim import Sim

JOBS = 10_000
SETTLES = 240
"""Ticks until each job has its memo: a tick writes 50."""
RUNS = 24
"""Ticks after each change: more than needed to judge all jobs."""
TICK_GOAL_S = 0.05
ALL_GOAL_S = 0.5
_HOUR = 3600.0
REQUESTS = tuple(whole(1 + n % 2, cores_per_slot=1 + n % 4) for n in range(8))


class Given:
    """A fake forecaster, whose forecasts the benchmark sets."""

    def __init__(self) -> None:
        self.found: Forecasts | None = None

    def current(self) -> Forecasts | None:
        """Return the forecasts that were set."""
        return self.found

    def owed_since(self) -> float | None:
        """Return None: no forecast is owed."""
        return None

    def observe(self, *_: object) -> None:
        """Ignore what the tick saw."""

    def take_texts(self) -> dict[str, str]:
        """Return no records."""
        return {}


class Waiting:
    """A daemon with many jobs that wait for own nodes."""

    def __init__(self, mode: str, worth: float) -> None:
        self._lead = Still()
        intake = {"mode": mode}
        limits = {"max_bursts": 1}
        plan = {"worth": worth}
        self._sim = Sim(self._lead, intake=intake, limits=limits, plan=plan)
        self._given = Given()
        sim, known = self._sim, self._sim.engine.snapshot.world
        self._config = EngineConfig(
            settings=sim.settings,
            identity=known.identity,
            slots=tuple(known.slots),
            providers={"local": sim.provider},
        )
        beside = SideThreads(cast("Forecaster", self._given))
        sim.engine = Engine(sim.lead, self._config, sim.executor, sim.now, beside)
        for number in range(JOBS):
            self._lead.submit(REQUESTS[number % 8], duration=_HOUR, name=f"n{number}")
        if worth:
            self.foresee(120.0)
        self._sim.tick(SETTLES)
        self._lead.seen = self._lead.observe()

    def reload(self) -> None:
        """Load the settings again."""
        settings = copy.copy(self._config.settings)
        self._config = msgspec.structs.replace(self._config, settings=settings)
        self._sim.engine.change(self._config)

    def foresee(self, wait: float | None) -> None:
        """Forecast that all jobs start in `wait` seconds; None for no forecast."""
        self._given.found = None
        if wait is None:
            return
        at = self._sim.now + wait
        start = StartEstimate(expected=at, earliest=at, latest=at, after=JobId(JOBS))
        starts = dict.fromkeys(map(JobId, range(1, JOBS + 1)), start)
        line = Line(frozenset(starts), frozenset(), self._sim.settings.rules)
        self._given.found = Forecasts(
            at=self._sim.now,
            starts=starts,
            judged=Judged(starts, self._sim.now, line),
            run_times={},
            pending=(),
            grades={},
        )

    def ticks(self) -> list[float]:
        """Return the CPU seconds of RUNS ticks."""
        times = []
        # Jobs are judged again no sooner than this after the last time.
        self._sim.now += JOBS * 0.001
        for _ in range(RUNS):
            self._sim.now += 0.1
            began = time.thread_time()
            self._sim.engine.tick(self._sim.now)
            times.append(time.thread_time() - began)
        return times

    def time_pass(self) -> float:
        """Return the CPU seconds of a forecast for judging all jobs."""
        seen, now = self._sim.engine.snapshot, self._sim.now
        picture, known = picture_of(queue()), history()
        times = []
        for _ in range(PASSES):
            began = time.process_time()
            inputs = PassInputs.of(seen.records, seen.world, seen.decisions)
            leaves = bursts_assumed(inputs, seen.settings, now)
            assert leaves is not None
            own = own_nodes_queue(seen.records, seen.world)
            own = msgspec.structs.replace(own, leaves=leaves)
            made = forecast(picture, own, known, now)
            times.append(time.process_time() - began)
            # Jobs that do not fit own nodes share the one burst.
            waits = {job.id for job in picture.pending} - own.elsewhere
            assert made.starts.keys() == waits
        return min(times)

    def reasons(self) -> set[Reason]:
        """Return the reasons of all decisions about jobs."""
        found = self._sim.engine.snapshot.decisions.values()
        return {decision.reason for decision in found}


def judged(site: Waiting) -> tuple[float, float]:
    """Return the longest tick with forecasts, and the longest time to judge all."""
    quiet = min(site.ticks())
    times = []
    for wait in (180.0, None, 240.0, None, 120.0):
        site.foresee(wait)
        times.append(site.ticks())
        expected = Reason.NOT_FORECAST if wait is None else Reason.NOT_WORTH
        assert expected in site.reasons(), site.reasons()
    site.reload()
    times.append(site.ticks())
    extra = [sum(each) - RUNS * quiet for each in times]
    return max(map(max, times)), max(extra)


def measure() -> list[Measure]:
    """Return all measures."""
    logging.getLogger("burst").setLevel(logging.ERROR)
    relax_garbage_collector()
    found = []
    for mode in ("hold", "scheduler"):
        eager = Waiting(mode, 0.0)
        eager.reload()
        without = max(eager.ticks())
        frugal = Waiting(mode, 0.1)
        longest, together = judged(frugal)
        estimated = frugal.time_pass()
        goal = Goal("<", TICK_GOAL_S * 1e3)
        found += [
            Measure(f"mode {mode}: longest tick without rules", without * 1e3, "ms"),
            Measure(f"mode {mode}: with rules", longest * 1e3, "ms", goal),
            Measure(f"mode {mode}: against that without", longest / without, "x"),
            Measure(f"mode {mode}: a forecast of {JOBS:,} jobs", estimated, "s"),
            Measure(
                f"mode {mode}: all forecast and judged",
                estimated + together,
                "s",
                Goal("<", ALL_GOAL_S),
            ),
        ]
    return found


if __name__ == "__main__":
    main_of(__doc__, measure)
