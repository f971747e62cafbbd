# SPDX-License-Identifier: MIT
"""Blocking: how much jobs that wait for absent nodes delay the jobs behind them.

In each mode, 20 burst jobs come first, for nodes that never join, then 200 jobs for the
lead's own nodes. In the same instance, the 200 jobs also run without the 20, in turns:
each turn gives the ratio of two times measured one after the other. The result is the
median of the turns, because other work shares the machine.

`none` is Flux alone. `hold` is `--setattr=burstable`: the daemon holds such a job when
it sees it. In `hold-burst` and the other modes, jobs are those that `flux submit
--burst` submits in this mode.

With --race it submits 2,000 burst jobs in one asynchronous batch instead, and counts
how many the scheduler denied or started on own nodes before they could be held. Half
are larger than the instance. Half are small and, if they are those of `flux submit
--burst`, for lent nodes only.

python -m benchmarks.blocking [--json] [--race] [--turns 5] [MODE...]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FLUX, MISSING, FluxInstance, flux_bindings
from tests.flux_instance import flux_instance as started
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

GOAL = 1.1
TURNS = 5
BURST_JOBS, LOCAL_JOBS, RACING = 20, 200, 2000
LASTS = "0.2s"
"""The run time of a local job: simulated, so that only the scheduler's time differs."""
DEADLINE_S = 300.0
_LOOK_S = 0.25
PATIENCE = 2.0
"""Local jobs count as blocked after this multiple of their time without burst jobs."""
MODES = ("none", "hold", "hold-burst", "queue", "scheduler")
QUEUES = {
    "batch": {"requires": ["local"]},
    "burst": {"requires": ["burst"]},
    "burst-ready": {"requires": ["burst"]},
}


class Found(msgspec.Struct, frozen=True):
    """The result for the local jobs in one mode."""

    local_done: int
    ratio: float | None
    """The median ratio of the turns; None if the local jobs were blocked."""
    in_order: bool
    turns: tuple[float, ...] = ()


class Race(msgspec.Struct, frozen=True):
    """How many burst jobs the scheduler denied or started, and the daemon held."""

    jobs: int
    denied: int
    started: int
    held: int


class Bench:
    """An instance in one mode, with a daemon whose followers never join."""

    def __init__(self, instance: FluxInstance, mode: str) -> None:
        self._instance = instance
        self._mode = mode
        self._flux = flux_bindings()
        self._job = self._flux.job
        self._handle = self._flux.Flux(instance.uri)

    def submit_burst(self, count: int, **shape: Any) -> list[int]:
        """Submit burst jobs in the way of this mode, in one batch."""
        attributes: dict[str, Any] = {"exec.test.run_duration": "0.01s"}
        urgency = 16
        if self._mode != "none":
            attributes |= {"burstable": True, "burst": {}}
        if self._mode == "hold-burst":
            attributes["burst"]["urgency"], urgency = 16, 0
        if self._mode == "queue":
            attributes["queue"] = "burst"
        if self._mode in {"hold-burst", "scheduler"} and "num_nodes" not in shape:
            attributes["constraints"] = {"properties": ["burst"]}
        return self._submit(count, urgency, attributes, shape)

    def submit_local(self, count: int = LOCAL_JOBS) -> list[int]:
        """Submit local jobs in one batch."""
        attributes: dict[str, Any] = {"exec.test.run_duration": LASTS}
        attributes["constraints"] = {"properties": ["local"]}
        if self._mode == "queue":
            attributes["queue"] = "batch"
        return self._submit(count, 16, attributes, {"num_tasks": 1})

    def _submit(
        self, count: int, urgency: int, attributes: Mapping[str, Any], shape: Any
    ) -> list[int]:
        spec = self._job.JobspecV1.from_command(["true"], **shape)
        spec.cwd = str(self._instance.directory)
        spec.environment = {}
        for name, value in attributes.items():
            spec.setattr(name, value)
        text = spec.dumps()
        futures = [
            self._job.submit_async(self._handle, text, urgency=urgency)
            for _ in range(count)
        ]
        return [int(future.get_id()) for future in futures]

    def events(self, jobs: Sequence[int]) -> list[dict[str, float]]:
        """Return for each job the time of the first event of each name."""
        found = []
        for job in jobs:
            text = self._job.job_kvs_lookup(self._handle, job, keys=["eventlog"])
            times: dict[str, float] = {}
            for line in text["eventlog"].splitlines():
                event = json.loads(line)
                name = event["name"]
                if name == "exception":
                    name = f"exception-{event['context']['type']}"
                times.setdefault(name, event["timestamp"])
            found.append(times)
        return found

    def wait(self, jobs: Sequence[int], deadline_s: float = DEADLINE_S) -> None:
        """Wait until these jobs have ended, or until the deadline."""
        ends = time.monotonic() + deadline_s
        while time.monotonic() < ends:
            if all("clean" in log for log in self.events(jobs)):
                return
            time.sleep(_LOOK_S)

    def time_local(self, deadline_s: float = DEADLINE_S) -> tuple[int, float, bool]:
        """Run the local jobs; return how many ended, their time, and whether in order.

        All are submitted before the first may start, so that job ids give the order.
        """
        self._start(False)
        jobs = sorted(self.submit_local())
        begin = time.time()
        self._start(True)
        self.wait(jobs, deadline_s)
        logs = self.events(jobs)
        done = [log for log in logs if "finish" in log]
        starts = [log["alloc"] for log in done]
        for job, log in zip(jobs, logs, strict=True):
            if "clean" not in log:
                self._job.cancel(self._handle, job)
        last = max((log["finish"] for log in done), default=begin)
        return len(done), last - begin, starts == sorted(starts)

    def _start(self, start: bool) -> None:
        request: dict[str, Any] = {"start": start, "all": False}
        if self._mode == "queue":
            request["name"] = "batch"
        self._instance.rpc("job-manager.queue-start", request)

    def blocking(self, turns: int) -> Found:
        """Compare the local jobs behind burst jobs with the same alone, in turns."""
        ratios = []
        in_order = True
        for _ in range(turns):
            _, alone, _ = self.time_local()
            burst = self.submit_burst(BURST_JOBS, num_tasks=4, num_nodes=4)
            done, behind, ordered = self.time_local(PATIENCE * alone)
            for log in self.events(burst):
                assert "alloc" not in log, "a burst job got nodes"
            for job in burst:
                self._job.cancel(self._handle, job)
            self.wait(burst)
            if done < LOCAL_JOBS:
                return Found(done, None, False)
            ratios.append(round(behind / alone, 3))
            in_order = in_order and ordered
        ratio = round(statistics.median(ratios), 3)
        return Found(LOCAL_JOBS, ratio, in_order, tuple(ratios))

    def race(self, jobs: int = RACING) -> Race:
        """Count the burst jobs of one batch that the scheduler denied or started."""
        half = jobs // 2
        large = self.submit_burst(half, num_tasks=100, num_nodes=100)
        small = self.submit_burst(half, num_tasks=1)
        # When a local job at the end of the queue has ended, the scheduler has decided
        # about all jobs before it.
        last = self.submit_local(1)
        self.wait(last)
        if self._mode == "hold":
            # Jobs that are not lost yet will be held.
            wait_until(lambda: not self._undecided(large), "the holds")
        logs = self.events(large + small)
        assert "finish" in self.events(last)[0], "the queue is blocked"
        return Race(
            jobs=len(logs),
            denied=sum("exception-alloc" in log for log in logs),
            started=sum("alloc" in log for log in logs),
            held=sum("urgency" in log for log in logs),
        )

    def _undecided(self, jobs: Sequence[int]) -> set[int]:
        """Return the jobs that are neither lost nor held."""
        asked = {"max_entries": 0, "attrs": ["urgency"]}
        active = self._instance.rpc("job-manager.list", asked)["jobs"]
        return {job["id"] for job in active if job["urgency"]} & set(jobs)


@contextmanager
def bench(mode: str) -> Iterator[Bench]:
    """Yield an instance in a mode, and always end all of it."""
    tables = {"queues": QUEUES} if mode == "queue" else {}
    with started(tables) as instance:
        user = UserCli(instance)
        if mode == "queue":
            user.do("queue", "start", "-qbatch")
        if mode == "scheduler":
            user.use_scheduler()
        if mode == "none":
            yield Bench(instance, mode)
            return
        with open_harness(instance) as cli, serving(cli, mode):
            yield Bench(instance, mode)


@contextmanager
def serving(cli: CliHarness, mode: str) -> Iterator[None]:
    """Run a daemon whose followers start and never join."""
    never = cli.directory / "never"
    never.write_text("#!/bin/sh\nexec sleep 3600\n")
    never.chmod(0o700)
    local = {"type": "local", "provision": "1h", "flux": str(never)}
    cli.write(
        intake={"mode": mode.partition("-")[0]},
        deadlines={"join": "1h"},
        # Jobs that are larger than offers have nodes would fail in mode scheduler.
        providers={"local": {**local, **cli.options, "max_nodes": 100}},
    )
    with cli.daemon():
        yield


def measure(modes: Sequence[str], race: bool, turns: int = TURNS) -> dict[str, Any]:
    """Return the results of each mode, as the command prints them."""
    found: dict[str, Any] = {}
    for mode in modes:
        with bench(mode) as place:
            result = place.race() if race else place.blocking(turns)
            found[mode] = msgspec.to_builtins(result)
    return found


def main(arguments: list[str]) -> int:
    """Measure and print; return 0 if queue and scheduler meet their goals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blocking")
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    parser.add_argument("--race", action="store_true", help="submit burst jobs at once")
    parser.add_argument("--turns", type=int, default=TURNS, help="number of turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    unknown = set(options.modes) - set(MODES)
    if unknown:
        parser.error(f"no such mode: {', '.join(unknown)}; there are {MODES}")
    if not FLUX:
        sys.stderr.write(f"blocking: skipped, {MISSING}\n")
        return 0
    found = measure(options.modes or MODES, options.race, options.turns)
    if options.json:
        print(json.dumps(found))
    else:
        for mode, row in found.items():
            print(f"{mode:10}  " + ", ".join(f"{k} {v}" for k, v in row.items()))
    return (
        0 if all(is_met(found[m]) for m in ("queue", "scheduler") if m in found) else 1
    )


def is_met(row: Mapping[str, Any]) -> bool:
    """Tell whether the result of a mode meets the goal: no job lost, or no delay."""
    if "jobs" in row:
        return not row["denied"] and not row["started"]
    done = row["local_done"] == LOCAL_JOBS and row["in_order"]
    return bool(done and row["ratio"] <= GOAL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
