# SPDX-License-Identifier: MIT
"""How long the decisions about an ensemble take, and what they save, in simulation.

Decisions: 50 members with 5,000 waiting jobs, against the same with 500. Savings: a day
in which the rate of jobs rises and falls twice, with workload-demand, against a fixed
size that is enough for the peak, and against the rule of the Horizontal Pod Autoscaler
(busy nodes against a target of 70 %, tolerance 10 %, the largest recommendation of the
last five minutes). All three run in the same simulator, in which no running job is ever
lost; nodes take five minutes to boot.

    python benchmarks/ensemble.py [--json]
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from typing import Any

from burst_ensemble.algorithm import (
    Algorithm,
    MemberDecision,
    MemberView,
    Memory,
    QueueCounts,
)
from burst_ensemble.config.spec import EnsembleSpec, JobSpec, MemberSpec
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.controller import look, new_record
from burst_ensemble.core.job_rows import MemberState, SizedReading
from burst_ensemble.core.views import make_views, take_in
from burst_ensemble_replay.member import NodeTimes
from burst_ensemble_replay.simulator import EnsembleSimulator, Workload
from burst_replay.trace import TraceJob

from benchmarks.table import Goal, Measure, main_of
from burst.config import convert

_MEMBERS = 50
_MOST = 16
_SIZES = (1, 1, 1, 2, 2, 4)
_NOW = 1_000_000.0
_OPTIONS: dict[str, dict[str, Any]] = {
    "workload-demand": {"scaleUpStrategy": "randomJob"},
    "more-jobs": {"batch": 50},
    "stop": {},
}


class Fixed:
    """An algorithm that always asks for the maximum size."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the maximum size."""
        return MemberDecision(nodes=view.most, memory=memory, why=f"fixed at {now}")


class PodAutoscalerRule:
    """The rule of the Horizontal Pod Autoscaler: keep seven of ten nodes busy."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the largest recommendation of the last five minutes."""
        up = max(1, view.nodes_up)
        # Waiting jobs count as load, or it would never grow beyond full use.
        busy = (view.nodes_busy + view.nodes_waited_for) / up
        wanted = view.nodes
        if abs(busy / 0.7 - 1) > 0.1:
            wanted = math.ceil(up * busy / 0.7)
        seen = [each for each in memory.get("seen", []) if now - each[0] < 300]
        seen.append([now, max(view.least, min(view.most, wanted))])
        most = max(each[1] for each in seen)
        return MemberDecision(nodes=most, memory={"seen": seen}, why="utilisation")


def make(name: str, **options: Any) -> Algorithm:
    kind = BUILT_IN[name]
    made: Algorithm = kind(convert(kind.Options, options, "options"))
    return made


def queue(jobs: int) -> tuple[EnsembleSpec, dict[str, SizedReading]]:
    """Return an ensemble in which `jobs` jobs wait, and as many are still left."""
    each = jobs // _MEMBERS
    members = tuple(
        MemberSpec(
            name=f"m{n}",
            provider="p",
            max=_MOST,
            jobs=(JobSpec(name="x", command="true", count=each),),
        )
        for n in range(_MEMBERS)
    )
    sizes = dict.fromkeys((1, 2, 3, 4), each // 4)
    reading = SizedReading(
        nodes_paid=8,
        size=8,
        nodes_up=8,
        queue=QueueCounts(run=8, sched=each),
        waiting=sizes,
        next_jobs=(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3),
        price=1.0,
    )
    return EnsembleSpec(name="e", members=members), {m.name: reading for m in members}


def decisions(jobs: int) -> tuple[float, float]:
    """Return the CPU seconds of the slowest decision, and of a step without any."""
    spec, readings = queue(jobs)
    record = new_record(spec, _NOW - 1000)
    read = {
        name: MemberState(reading, record.members[name])
        for name, reading in readings.items()
    }
    record = take_in(record, read)
    views = make_views(spec, record, readings)
    slowest = 0.0
    for name, options in _OPTIONS.items():
        algorithm = make(name, **options)
        for view in views.values():
            took = min(
                _seconds(lambda a=algorithm, v=view: a.decide(v, {}, _NOW))
                for _ in range(3)
            )
            slowest = max(slowest, took)
    algorithm = make("workload-demand")
    answers = {
        name: {"workload-demand": algorithm.decide(view, {}, _NOW)}
        for name, view in views.items()
    }

    def step() -> None:
        look(spec, record, read, lambda view, _: answers[view.name], _NOW)

    return slowest, min(_seconds(step) for _ in range(5))


def _seconds(call: Any) -> float:
    begun = time.thread_time()
    call()
    return time.thread_time() - begun


def drawn_arrivals(hours: float, per_hour: float, seed: int) -> list[TraceJob]:
    """Return the jobs of `hours` hours. Twice, their rate rises to the double of the
    mean, `per_hour`, and falls to zero.
    """
    draw = random.Random(seed)
    found: list[TraceJob] = []
    at, length = 0.0, hours * 3600
    while True:
        at += draw.expovariate(2 * per_hour / 3600)
        if at >= length:
            return found
        # Thinning (Lewis and Shedler, 1979): keep the share of the present rate in the
        # highest rate.
        if draw.random() < (1 - math.cos(4 * math.pi * at / length)) / 2:
            run_time = draw.lognormvariate(math.log(600), 0.8)
            nodes, run_time = draw.choice(_SIZES), round(run_time, 1)
            found.append(TraceJob(at, run_time, nodes, limit=run_time))


def day(algorithm: Algorithm) -> tuple[float, float]:
    """Return the node-hours paid for each needed one, and the mean wait in seconds."""
    spec = EnsembleSpec(
        name="e", members=(MemberSpec(name="m", provider="p", max=_MOST),)
    )
    arrivals = drawn_arrivals(24.0, 15.0, seed=7)
    simulator = EnsembleSimulator(
        spec, {"m": {"a": algorithm}}, NodeTimes(), Workload(arrivals)
    )
    (found,) = simulator.run(24 * 3600.0).members
    return found.paid_node_hours / found.needed_node_hours, found.mean_wait_s


def measure() -> Sequence[Measure]:
    """Return all measures."""
    few, _ = decisions(500)
    many, step = decisions(5000)
    options = {"scaleUpStrategy": "total", "disableTermination": "yes"}
    ours = make("workload-demand", **options, scaleUpChecks=1)
    paid, wait = day(ours)
    kept = make("workload-demand", **options, scaleUpChecks=1, scaleDownChecks=60)
    kept_paid, kept_wait = day(kept)
    fixed_paid, fixed_wait = day(Fixed())
    hpa_paid, hpa_wait = day(PodAutoscalerRule())
    return [
        Measure("slowest decision, 5,000 jobs", 1000 * many, "ms", Goal("<", 10.0)),
        Measure("of that with 500 jobs", many / few, "x", Goal("<", 12.0)),
        Measure("a step of 50 members without them", 1000 * step, "ms"),
        Measure("paid for each needed: demand", paid, "h"),
        Measure("paid for each needed: demand, kept 10 min", kept_paid, "h"),
        Measure("paid for each needed: fixed", fixed_paid, "h"),
        Measure("paid for each needed: as the HPA", hpa_paid, "h"),
        Measure("paid: demand of fixed", paid / fixed_paid, "x", Goal("<", 0.7)),
        Measure("paid: demand of the HPA's", paid / hpa_paid, "x", Goal("<", 1.0)),
        Measure("mean wait: demand", wait, "s"),
        Measure("mean wait: demand, kept 10 min", kept_wait, "s"),
        Measure("mean wait: fixed", fixed_wait, "s"),
        Measure("mean wait: as the HPA", hpa_wait, "s"),
    ]


if __name__ == "__main__":
    main_of(__doc__, measure)
