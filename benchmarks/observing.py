# SPDX-License-Identifier: MIT
"""A process that observes the bursts of a namespace, and prints its CPU and memory.

`benchmarks.many_bursts` starts it once for each way, because memory is measured for a
process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from benchmarks.process import cpu_seconds, memory_mb
from burst.kits.kube import Cluster, Kubeconfig
from burst.kits.pods import OfferTable, PodBursts, PodSettings, Tags
from burst.kits.pods.lifecycle.reaper import find_ours
from burst.kits.pods.status.burst_objects import BurstObjects, group_by_burst
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.status.observer import Observer
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Phase
from burst.provider_answers import check_statuses

EVERY_S = 2.0
"""Seconds between two calls, as in `[daemon] observe`."""
NAME = "far"
_JOINED = "<6>broker.info[1]: parent-ready: join->config-sync 4ms"


class Cost(msgspec.Struct, frozen=True):
    """The cost of observing."""

    share: float
    """The share of a core, in percent."""
    call: float
    """The CPU time of one call, in milliseconds."""
    memory: float
    """The memory in MB beyond that before the process knew of any burst."""
    bursts: int
    """How many bursts were seen to run."""


class PlayedLogs(Cluster):
    """A cluster of kwok's nodes, which have no logs: brokers seem to have joined."""

    def tail(self, *_: object, **__: object) -> str:
        """Return the log of a broker that has joined."""
        return _JOINED


class ListedBursts:
    """The baseline: each call lists all objects in full."""

    def __init__(self, cluster: Cluster, settings: PodSettings, tags: Tags) -> None:
        self._how = cluster, settings, tags.labels()
        self._found: dict[BurstId, BurstObjects] = {}

    def refresh(self) -> set[BurstId]:
        """List all objects; every burst counts as changed."""
        before = self._found.keys()
        found = group_by_burst(map(kept, find_ours(*self._how)))
        self._found = {burst.id: burst for burst in found}
        return {*before, *self._found}

    def ids(self) -> list[BurstId]:
        """Return all bursts, in order."""
        return list(self._found)

    def objects(self, burst: BurstId) -> BurstObjects:
        """Return the objects of a burst."""
        return self._found[burst]


def settings_for(namespace: str) -> PodSettings:
    """Return the settings of the bursts."""
    return PodSettings(
        namespace=namespace,
        image="local.test/flux:v0.88.0",
        user=1000,
        one_per_node=False,
        offers={"nodes": OfferTable(cores=1, max_nodes=8, cpu="10m", memory="16Mi")},
    )


def watching(kubeconfig: str, namespace: str, owner: str) -> PodBursts:
    """Return an object that observes as providers do, with watches."""
    cluster = PlayedLogs(Kubeconfig(kubeconfig), timeout=60)
    return PodBursts(cluster, settings_for(namespace), Tags(owner, NAME))


def listing(kubeconfig: str, namespace: str, owner: str) -> Observer:
    """Return an object that observes in the way of the baseline, with lists."""
    cluster = PlayedLogs(Kubeconfig(kubeconfig), timeout=60)
    settings = settings_for(namespace)
    source: Any = ListedBursts(cluster, settings, Tags(owner, NAME))
    return Observer(cluster, settings, source, time.time)


class Observing(Protocol):
    """One way to observe."""

    def observe(self) -> Sequence[BurstStatus]:
        """Return the status of all bursts."""
        ...


WAYS: dict[str, Callable[[str, str, str], Observing]] = {
    "watch": watching,
    "list": listing,
}


def observe(way: str, kubeconfig: str, namespace: str, calls: int) -> Cost:
    """Observe as the daemon does while nothing changes, and return the cost."""
    make, pid = WAYS[way], os.getpid()
    nobody = make(kubeconfig, namespace, "nobody")
    for _ in range(3):
        check_statuses(nobody.observe())
    before = memory_mb(pid)["uss"]
    bursts = make(kubeconfig, namespace, "bench")
    for _ in range(2):
        found = check_statuses(bursts.observe())
    begun, spent = time.monotonic(), cpu_seconds(pid)
    for count in range(calls):
        found = check_statuses(bursts.observe())
        time.sleep(max(0.0, begun + (count + 1) * EVERY_S - time.monotonic()))
    spent = cpu_seconds(pid) - spent
    return Cost(
        share=100 * spent / (time.monotonic() - begun),
        call=1000 * spent / calls,
        memory=memory_mb(pid)["uss"] - before,
        bursts=sum(status.phase is Phase.RUNNING for status in found),
    )


if __name__ == "__main__":
    which, config, where, times = sys.argv[1:]
    print(msgspec.json.encode(observe(which, config, where, int(times))).decode())
