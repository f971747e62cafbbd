# SPDX-License-Identifier: MIT
"""How much of Fluxion's time its answers about allocated resources take.

A real lead of thousands of nodes that Fluxion schedules. A rank is drained and
undrained all the time, so that each look finds something new. The lead is read as fast
as possible, in two ways: as the daemon does, and with a request to Fluxion each time.
The result is the CPU time of the thread that has Fluxion's graph.

    python benchmarks/fluxion.py [--json] [--nodes 2000] [--seconds 60]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.process import cpu_seconds
from benchmarks.table import Goal, Measure, Skipped, main_of
from burst.flux.handle import Handle
from burst.flux.ranks import read_ranks
from burst.flux.rpc import RpcClient
from burst.flux.scheduler_status import SchedulerStatus
from tests.flux.fluxion import scheduled, use_fluxion
from tests.flux_instance import FLUX, FluxInstance
from tests.flux_instance import MISSING as NO_FLUX
from tests.flux_instance import flux_instance as started
from tests.support.fluxion import MISSING, RESOURCE, find_fluxion

# Linux cuts the name of a thread to 15 characters.
_NAME = RESOURCE[:15]


def measure(nodes: int, seconds: int) -> list[Measure]:
    """Measure both ways."""
    if not FLUX:
        raise Skipped(NO_FLUX)
    if find_fluxion() is None:
        raise Skipped(MISSING)
    with started(scheduled("easy"), further=nodes - 10) as instance:
        use_fluxion(instance)
        known = SchedulerStatus()
        shared = share_of(instance, seconds, lambda: known)
        each = share_of(instance, seconds, SchedulerStatus)
    return [
        Measure(f"Fluxion's time with {nodes} nodes", shared, "%", Goal("<=", 1.0)),
        Measure("  if it is asked at each look", each, "%"),
    ]


def share_of(
    instance: FluxInstance, seconds: int, status: Callable[[], SchedulerStatus]
) -> float:
    """Return the percentage of time that Fluxion works while the lead is read."""
    with closing(Handle(instance.uri)) as handle:
        client = RpcClient(handle)
        read_ranks(client, status())
        began, before = time.monotonic(), thread_seconds(instance)
        while time.monotonic() < began + seconds:
            client.ask("resource.drain", {"targets": "1", "reason": "new"})
            read_ranks(client, status())
            client.ask("resource.undrain", {"targets": "1"})
        spent = thread_seconds(instance) - before
        return 100 * spent / (time.monotonic() - began)


def thread_seconds(instance: FluxInstance) -> float:
    """Return the CPU time of Fluxion's thread in the lead's broker, in seconds."""
    tasks = Path(f"/proc/{instance.pid('lead-0')}/task")
    for task in tasks.iterdir():
        if (task / "comm").read_text().strip() == _NAME:
            return cpu_seconds(int(task.name), tasks)
    raise AssertionError(f"the broker has no thread {_NAME}")


if __name__ == "__main__":
    main_of(
        __doc__,
        measure,
        nodes=(2000, "number of nodes of the lead"),
        seconds=(60, "how long to measure each way"),
    )
