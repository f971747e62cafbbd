# SPDX-License-Identifier: MIT
"""Order and cost of sched-burst, against the scheduler that it is derived from.

A recorded workload without burst jobs is replayed through both, each as Flux runs it,
over the real resource pool: jobs come, get nodes and end at the same simulated times.
The nodes of each job and the order must be the same; the cost is the CPU time of this
process in the scheduler. With --guests users are kept apart, and no rank is lent: both
get jobs as the frobnicator makes them, and ours checks their constraints.

python benchmarks/order.py [--json] [--jobs 10000] [--policy fifo|backfill] [--guests]

The record comes from a formula, so it is always and everywhere the same.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from tests.flux_instance import FLUX, MISSING, flux_bindings
from tests.intake.user_cli import SCHEDULER

GOAL = 1.2
NODES, CORES = 64, 8
DEPTH = {"fifo": 8, "backfill": 0}
"""How many pending jobs the job manager shows the shipped scheduler; 0 for all."""
ROUNDS = 5


class Entry(msgspec.Struct, frozen=True):
    """A job of the record; times in seconds."""

    job: int
    at: float
    cores: int
    nodes: int
    lasts: float
    priority: int


def record(jobs: int) -> Iterator[Entry]:
    """Yield a workload that keeps the nodes busy and some hundreds of jobs waiting."""
    state, at = 1, 0.0
    for job in range(1, jobs + 1):
        draws = []
        for _ in range(5):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            draws.append(state >> 40)
        at += draws[0] % 100 / 80
        nodes = draws[1] % 9 if draws[2] % 4 == 0 else 0
        yield Entry(
            job=job,
            at=at,
            cores=1 + draws[1] % CORES,
            nodes=nodes,
            lasts=float(5 + draws[3] % 120),
            priority=16 + (draws[4] % 20 == 0),
        )


class Log(list[Any]):
    """The actions of a scheduler, in order."""


class Request:
    """An alloc request, with the methods by which the scheduler answers it."""

    def __init__(self, entry: Entry, replay: Replay) -> None:
        self._entry = entry
        self._replay = replay

    def success(self, pool: Any, _annotations: Any = None) -> None:
        """The job gets resources."""
        self._replay.started(self._entry, pool)

    def deny(self, note: str | None = None) -> None:
        """The job never gets resources."""
        self._replay.denied(self._entry, note)

    def cancel(self) -> None:
        """The request was recalled."""
        self._replay.recalled(self._entry)

    def annotate(self, _annotations: Any) -> None:
        """Ignore annotations."""


class Replay:
    """One run of the record through one scheduler."""

    def __init__(
        self, scheduler: Any, pool: Any, depth: int, constraint: dict[str, Any]
    ) -> None:
        self._constraint = constraint
        self._scheduler = scheduler
        self._pool = pool
        self._depth = depth
        self._waiting: list[tuple[int, int, Entry]] = []
        self._shown: dict[int, Entry] = {}
        self._ends: list[tuple[float, int, Any]] = []
        self.now = 0.0
        self.spent = 0.0
        self.log = Log()

    def run(self, entries: list[Entry]) -> None:
        """Replay all entries, until the last job has ended."""
        coming = iter(entries)
        entry = next(coming, None)
        while entry or self._ends:
            if entry and (not self._ends or entry.at <= self._ends[0][0]):
                self.now = entry.at
                heapq.heappush(self._waiting, (-entry.priority, entry.job, entry))
                entry = next(coming, None)
            else:
                self.now, job, pool = heapq.heappop(self._ends)
                begin = time.process_time()
                self._scheduler.free(job, pool, final=True)
                self.spent += time.process_time() - begin
            self._turn()
        assert not self._waiting
        assert not self._shown

    def started(self, entry: Entry, pool: Any) -> None:
        """Record the nodes of the job, and when it will end."""
        del self._shown[entry.job]
        self.log.append((round(self.now, 3), entry.job, pool.dumps()))
        heapq.heappush(self._ends, (self.now + entry.lasts, entry.job, pool))

    def recalled(self, entry: Entry) -> None:
        """Put the job back, to show it again later."""
        del self._shown[entry.job]
        heapq.heappush(self._waiting, (-entry.priority, entry.job, entry))

    def denied(self, entry: Entry, note: str | None) -> None:
        """Record that the job gets nothing."""
        del self._shown[entry.job]
        self.log.append((round(self.now, 3), entry.job, f"denied: {note}"))

    def _turn(self) -> None:
        """Show jobs to the scheduler and run it, until neither has more to do."""
        done = -1
        while done != len(self.log):
            done = len(self.log)
            self._recall()
            while self._waiting and self._has_room():
                _, _, entry = heapq.heappop(self._waiting)
                self._shown[entry.job] = entry
                self._show(entry)
            begin = time.process_time()
            for _ in self._scheduler.schedule():
                pass
            for _ in self._scheduler.forecast() or ():
                pass
            self.spent += time.process_time() - begin

    def _has_room(self) -> bool:
        return not self._depth or len(self._shown) < self._depth

    def _recall(self) -> None:
        """Recall the last of the shown jobs if a waiting job comes before it."""
        if self._waiting and not self._has_room():
            least = max(self._shown.values(), key=lambda e: (-e.priority, e.job))
            if self._waiting[0][:2] < (-least.priority, least.job):
                self._scheduler.cancel(least.job)

    def _show(self, entry: Entry) -> None:
        jobspec = make_jobspec(entry, self._constraint)
        request = Request(entry, self)
        begin = time.process_time()
        self._scheduler.alloc(request, entry.job, entry.priority, 0, entry.at, jobspec)
        self.spent += time.process_time() - begin


def make_jobspec(entry: Entry, constraint: dict[str, Any]) -> dict[str, Any]:
    slot = {
        "type": "slot",
        "count": 1,
        "label": "task",
        "with": [{"type": "core", "count": entry.cores}],
    }
    node = {"type": "node", "count": entry.nodes, "with": [slot]}
    return {
        "version": 1,
        "resources": [node if entry.nodes else slot],
        "attributes": {"system": {"duration": entry.lasts, **constraint}},
    }


class Clock:
    """The simulated time, which replaces the module `time` of a shipped scheduler."""

    replay: Replay | None = None

    def time(self) -> float:
        """Return the simulated time."""
        return self.replay.now if self.replay else 0.0


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("loaded", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_pool(flux: Any, lent: bool) -> Any:
    execution = {
        "R_lite": [{"rank": f"0-{NODES - 1}", "children": {"core": f"0-{CORES - 1}"}}],
        "nodelist": [f"n[0-{NODES - 1}]"],
        "starttime": 0.0,
        "expiration": 0.0,
        "properties": {"burst": f"{NODES // 2}-{NODES - 1}"} if lent else {},
    }
    return flux.resource.ResourcePool({"version": 1, "execution": execution})


def play(policy: str, ours: bool, guests: bool, entries: list[Entry]) -> Replay:
    """Replay the record through one scheduler and return the replay."""
    flux = flux_bindings()
    importlib.import_module("flux.resource")
    bursting = load(SCHEDULER)
    kind, clock = bursting.make_class(policy), Clock()
    shipped = kind.__mro__[2]
    for name in ("time", "_time"):
        if name in sys.modules[shipped.__module__].__dict__:
            setattr(sys.modules[shipped.__module__], name, clock)
    scheduler = (kind if ours else shipped)(flux.Flux("loop://"))
    pool = make_pool(flux, lent=not guests)
    scheduler._resources = pool  # as its run() sets it
    if ours:  # as its run() reads it
        scheduler.keep_users_apart_by({"access": {"allow-guest-user": guests}})
    constraint = {"constraints": {"properties": ["^burst"]}} if guests else {}
    replay = Replay(scheduler, pool, 0 if ours else DEPTH[policy], constraint)
    clock.replay = replay
    replay.run(entries)
    return replay


def measure(
    jobs: int, policy: str, rounds: int = ROUNDS, *, guests: bool = False
) -> dict[str, Any]:
    """Replay through both in turns; the ratio is the median over the rounds."""
    entries = list(record(jobs))
    spent: dict[bool, list[float]] = {True: [], False: []}
    logs = {}
    for _ in range(rounds):
        for ours in (False, True):
            replay = play(policy, ours, guests, entries)
            spent[ours].append(replay.spent)
            logs[ours] = replay.log
    pairs = zip(spent[True], spent[False], strict=True)
    ratios = [round(ours / shipped, 3) for ours, shipped in pairs]
    return {
        "policy": policy,
        "jobs": jobs,
        "identical": logs[True] == logs[False],
        "started": len(logs[True]),
        "ours_s": min(spent[True]),
        "shipped_s": min(spent[False]),
        "ratio": statistics.median(ratios),
        "rounds": ratios,
        "goal": GOAL,
    }


def main(arguments: list[str]) -> int:
    """Measure and print; return 0 if the order is the same and the goal is met."""
    parser = argparse.ArgumentParser(description="order and cost of sched-burst")
    parser.add_argument("--jobs", type=int, default=10_000, help="number of jobs")
    parser.add_argument("--policy", choices=["fifo", "backfill"], default="fifo")
    parser.add_argument("--guests", action="store_true", help="keep users apart")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if not FLUX:
        sys.stderr.write(f"order: skipped, {MISSING}\n")
        return 0
    found = measure(options.jobs, options.policy, guests=options.guests)
    if options.json:
        print(json.dumps(found))
    else:
        same = "the same" if found["identical"] else "ANOTHER"
        print(
            f"{found['jobs']} jobs by {found['policy']}: {same} order and nodes;"
            f" {found['ratio']:.2f} times the cost of the shipped one"
            f" (goal {GOAL:g}; rounds {found['rounds']})"
        )
    return 0 if found["identical"] and found["ratio"] <= GOAL else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main(sys.argv[1:]))
