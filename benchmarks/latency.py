# SPDX-License-Identifier: MIT
"""The time from submission to `provision`, with 10,000 burstable jobs pending.

The lead is a real Flux; the provider only records the time of its call. In the same run
the time is recorded when our listener first reports each job: the rest of the latency
is ours. Jobs come at random, some while the burst before is still being taken down.

    python benchmarks/latency.py [--json]
"""

from __future__ import annotations

import logging
import random
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import closing

from benchmarks.table import Goal, Measure, Skipped, main_of
from burst.core.plan.slots import find_slots
from burst.errors import NotFound
from burst.lead import Lead, Store
from burst.model.burst import BurstId
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, Provider
from burst.runtime.clock import Clock
from burst.runtime.engine import Engine
from burst.runtime.engine_config import EngineConfig
from burst.runtime.executor import ProviderWorkers
from burst.runtime.session import GATHER_PAUSE, relax_garbage_collector
from burst.wakeup import WakeUp
from tests.builders import settings
from tests.flux_instance import (
    FLUX,
    MISSING,
    FluxInstance,
    flux_bindings,
    flux_instance,
)

PENDING = 10_000
ROUNDS = 100
LONGEST_PAUSE_S = 1.0
"""The maximum time from the end of one burst to the next job, in seconds."""


class Noting(Provider):
    """A provider that records the time of calls, and makes nothing."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.when = 0.0
        self.gone = threading.Event()

    def offers(self) -> Sequence[Offer]:
        """Return one offer."""
        return [Offer(name="o", shape=Shape(4, 1), max_nodes=4)]

    def provision(self, _: BurstSpec) -> None:
        """Record the time."""
        self.when = time.perf_counter()
        self.asked.set()

    def observe(self) -> Sequence[BurstStatus]:
        """Return nothing."""
        return []

    def reap(self, burst_id: BurstId) -> None:
        """Record that the burst is gone."""
        self.gone.set()
        raise NotFound(burst_id)


class Turning:
    """An engine that ticks in a thread of its own, like the daemon's."""

    def __init__(self, lead: Lead, provider: Noting) -> None:
        self.heard: list[float] = []
        self._wakeup = WakeUp()
        self._clock = Clock()
        self._going = True
        relax_garbage_collector()
        workers = ProviderWorkers(self._clock, self._wakeup.wake)
        identity = lead.identity()
        config = EngineConfig(
            settings=settings(intake={"local_wait": "0s"}),
            identity=identity,
            slots=find_slots(identity),
            providers={"noting": provider},
        )
        self.engine = Engine(lead, config, workers, self._clock())
        lead.listen(self._hear)
        self._thread = threading.Thread(target=self._turn)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._going = False
        self._wakeup.wake()
        self._thread.join()
        self.engine.close()

    def _hear(self) -> None:
        self.heard.append(time.perf_counter())
        self._wakeup.wake()

    def _turn(self) -> None:
        while self._going:
            due = self.engine.tick(self._clock())
            self._wakeup.wait(due - self._clock(), GATHER_PAUSE)


def fill(instance: FluxInstance) -> None:
    """Submit jobs that no slot can ever hold."""
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    spec = job.JobspecV1.from_command(["sleep", "600"], num_tasks=9, num_nodes=9)
    spec.cwd = "/"
    spec.environment = {}
    spec.setattr("burstable", True)
    text = spec.dumps()
    for _ in range(PENDING // 500):
        futures = [job.submit_async(handle, text) for _ in range(500)]
        for future in futures:
            future.get_id()


def rest(turning: Turning) -> None:
    """Wait until every pending job is held and nothing changes."""
    held = 0
    while held < PENDING:
        time.sleep(0.5)
        records = turning.engine.snapshot.records
        held = sum(hold.state.value == "held" for hold in records.holds.values())
    time.sleep(1.0)


def one(
    instance: FluxInstance, turning: Turning, provider: Noting
) -> tuple[float, float]:
    """Submit a job that bursts; return the seconds until the listener reports it, and
    until `provision` is called.
    """
    provider.asked.clear()
    provider.gone.clear()
    turning.heard.clear()
    began = time.perf_counter()
    number = instance.submit(nodes=4, slots=4, burstable=True, command=["true"])
    assert provider.asked.wait(30)
    heard = next(when for when in turning.heard if when > began)
    instance.cancel(number)
    assert provider.gone.wait(30)
    return heard - began, provider.when - began


def commit(store: Store) -> float:
    """Return the seconds until one record is on disk: Flux's share of each burst."""
    time.sleep(0.02)
    began = time.perf_counter()
    store.write({"benchmark/record": "x" * 800})
    return time.perf_counter() - began


def measure() -> list[Measure]:
    """Return all measures."""
    if not FLUX:
        raise Skipped(MISSING)
    # Hides warnings that a job was canceled before it was held, which is normal here.
    logging.getLogger("burst").addHandler(logging.NullHandler())
    draw = random.Random(1)
    samples = []
    with flux_instance() as instance:
        fill(instance)
        provider = Noting()
        with closing(instance.lead()) as lead:
            turning = Turning(lead, provider)
            try:
                rest(turning)
                for _ in range(ROUNDS):
                    samples.append(one(instance, turning, provider))
                    time.sleep(draw.uniform(0.0, LONGEST_PAUSE_S))
            finally:
                turning.stop()
            commits = sorted(commit(lead.store()) for _ in range(ROUNDS))
    return results(samples, commits)


def results(samples: list[tuple[float, float]], commits: list[float]) -> list[Measure]:
    """Return the measures for the samples of `one` and the times of `commit`."""
    heard = sorted(sample[0] for sample in samples)
    asked = sorted(sample[1] for sample in samples)
    ratio = statistics.median(asked) / statistics.median(heard)
    return [
        Measure(
            "submit to heard that it is ready, p50",
            statistics.median(heard) * 1000,
            "ms",
        ),
        Measure(
            "submit to provision, p50",
            statistics.median(asked) * 1000,
            "ms",
            Goal("<", 50),
        ),
        Measure(
            "submit to provision, p99",
            asked[int(len(asked) * 0.99) - 1] * 1000,
            "ms",
            Goal("<", 250),
        ),
        Measure("submit to provision, against submit to heard", ratio, "x"),
        Measure("a synced commit alone, p50", statistics.median(commits) * 1000, "ms"),
        Measure("a synced commit alone, p99", commits[-2] * 1000, "ms"),
    ]


if __name__ == "__main__":
    main_of(__doc__, measure)
