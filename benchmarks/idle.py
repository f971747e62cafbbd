# SPDX-License-Identifier: MIT
"""The share of a core and the memory that the daemon needs while nothing happens.

A real Flux lead with two nodes of its own, one burst of two followers that is up and
idle, and 1,000 pending jobs that are not burstable. The daemon has its default
settings. At the same time, the least possible daemon in Flux's own Python is measured:
a process that imports flux and has a handle with a timer. After that, the same daemon
runs an ensemble of 50 members that have no nodes and nothing to do.

    python benchmarks/idle.py [--json] [--seconds 60]
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.process import cpu_seconds, memory_mb
from benchmarks.table import Goal, Measure, Skipped, main_of
from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FLUX, MISSING, FluxInstance, flux_bindings
from tests.flux_instance import flux_instance as started

PENDING = 1000
MEMBERS = 50
SETTLE_S = 10.0
"""Seconds from the last change to the measurement: the effects of changes are over."""
_LEAST = """\
import flux
handle = flux.Flux()
def turn(handle, watcher, revents, arg):
    watcher.start()
handle.timer_watcher_create(2.0, turn, 2.0).start()
handle.reactor_run()
"""


def measure(seconds: int) -> list[Measure]:
    """Return all measures."""
    if not FLUX:
        raise Skipped(MISSING)
    with started(further=MEMBERS) as instance, open_harness(instance) as cli:
        own = [f"more-{number}" for number in range(MEMBERS)]
        cli.write(
            lead={"slots": ["burst-0-[0-3]", *own]},
            daemon={"cadence": "10s"},
        )
        instance.start_follower("lead-1")
        fill(instance)
        with cli.daemon() as daemon, least(instance) as other:
            cli.run("request", "-N2").lines  # noqa: B018
            time.sleep(SETTLE_S)
            ours, theirs = watch([daemon.process.pid, other], seconds)
            (burst,) = cli.status()["bursts"]
            assert burst["state"] == "online", burst
            start_ensemble(cli)
            time.sleep(SETTLE_S)
            (running,) = watch([daemon.process.pid], seconds)
            (ensemble,) = cli.run("ensemble", "status", "--json").json["ensembles"]
            assert ensemble["state"] == "running", ensemble["why"]
    return [
        Measure("CPU of the daemon", ours["cpu"], "%", Goal("<=", 0.5)),
        Measure("CPU of the least process", theirs["cpu"], "%"),
        Measure(
            f"CPU that an ensemble of {MEMBERS} idle members adds",
            running["cpu"] - ours["cpu"],
            "%",
            Goal("<=", 0.3),
        ),
        Measure("memory of the daemon, Pss", ours["pss"], "MB", Goal("<=", 60)),
        Measure("memory of the daemon, Uss", ours["uss"], "MB"),
        Measure("memory of the daemon, Rss", ours["rss"], "MB"),
        Measure("memory of the least process, Pss", theirs["pss"], "MB"),
        Measure("daemon against the least, Pss", ours["pss"] / theirs["pss"], "x"),
        Measure("daemon against the least, Rss", ours["rss"] / theirs["rss"], "x"),
    ]


def watch(pids: list[int], seconds: int) -> list[dict[str, float]]:
    """Return the use of each process in the next seconds: percent of a core, and MB."""
    began, before = time.perf_counter(), [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    took, after = time.perf_counter() - began, [cpu_seconds(pid) for pid in pids]
    return [
        {**memory_mb(pid), "cpu": (end - start) / took * 100}
        for pid, start, end in zip(pids, before, after, strict=True)
    ]


def fill(instance: FluxInstance) -> None:
    """Submit jobs that wait for nodes that are down."""
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    spec = job.JobspecV1.from_command(["sleep", "600"], num_tasks=9, num_nodes=9)
    spec.cwd = "/"
    spec.environment = {}
    text = spec.dumps()
    futures = [job.submit_async(handle, text) for _ in range(PENDING)]
    for future in futures:
        future.get_id()


def start_ensemble(cli: CliHarness) -> None:
    """Make the daemon run an ensemble that has nothing to do."""
    file = cli.directory / "idle.toml"
    members = (
        f'[[members]]\nname = "m{number}"\nprovider = "local"\nmin = 0\nmax = 1\n'
        # By default a member ends after it was idle for 100 s.
        'algorithm = [{ name = "workload-demand", '
        "options = { terminateChecks = 1000000 } }]\n"
        for number in range(MEMBERS)
    )
    file.write_text('name = "idle"\n' + "".join(members))
    started = cli.run("ensemble", "up", str(file))
    assert started.status == 0, started.stderr


@contextmanager
def least(instance: FluxInstance) -> Iterator[int]:
    """Yield the id of a process that does nothing, in Flux's own Python."""
    environment = {**os.environ, "FLUX_URI": instance.uri}
    command = [FLUX, "python", "-c", _LEAST]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main_of(__doc__, measure, seconds=(60, "how long to measure"))
