# SPDX-License-Identifier: MIT
"""The cost of observing 500 bursts of 8 pods in a real API server.

Ours: `observe` as the daemon calls it while nothing changes, every 2 s, with watches.
Baseline: the same with a list of all objects each time, in the same run. Each runs in a
process of its own, whose CPU time and memory are read (`benchmarks.observing`).

Then the time is measured from `provision` until all pods of a burst are seen to run:
for one burst alone, before the others are made, and for one among all. Rounds of both
ways take turns.

The control plane is kubelab's; kwok simulates nodes, on which pods run at once and have
no logs.

    python -m benchmarks.many_bursts [--json] [--bursts 500] [--calls 30] [--rounds 9]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.observing import WAYS, Cost, Observing, listing, watching
from benchmarks.table import Goal, Measure, Skipped, main_of
from burst.errors import NotFound
from burst.kits.pods import PodBursts
from burst.model.lead import Bootstrap, HostEntry
from burst.model.ranks import parse_hostlist
from burst.provider import BurstId, BurstSpec, LeadIdentity, Phase
from burst.testing import example_lead, example_spec
from tests.kubelab import build, fake
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace

_PODS = 8
_PODS_OF_A_NODE = 100
_DEADLINE_S = 1800.0
# The daemon's interval while a burst is being made.
_LOOK_S = 0.25
# The API server and the controllers share the machine, and still work when the last pod
# runs.
_SETTLE_S = 15.0


def measure(bursts: int, calls: int, rounds: int) -> Sequence[Measure]:
    """Measure one burst alone, make the others, then measure among all of them."""
    try:
        build.ensure(kwok=True)  # type: ignore[no-untyped-call]
    except build.Unavailable as missing:
        raise Skipped(f"no Kubernetes: {missing}") from None
    nodes = -(-(bursts + 2) * _PODS // _PODS_OF_A_NODE)
    with _cluster() as lab, tempfile.TemporaryDirectory() as place:
        fake.start_kwok(lab, nodes=nodes)  # type: ignore[no-untyped-call]
        with new_namespace(lab, "bench") as namespace:
            config = str(lab.kubeconfig)
            lead = _lead(Path(place))
            maker = watching(config, namespace, "bench")
            # As in the daemon, the object that provisions a burst also observes it.
            ways: dict[str, Observing] = {
                "watch": maker,
                "list": listing(config, namespace, "bench"),
            }
            alone = _times(maker, lead, ways, rounds)
            for number in range(bursts):
                maker.provision(_spec(lead, number + 1))
            _wait_running(maker, bursts)
            time.sleep(_SETTLE_S)
            among = _times(maker, lead, ways, rounds)
            costs = {way: _cost(way, config, namespace, calls) for way in WAYS}
    return _measures(bursts, costs, alone, among)


def _cluster() -> Cluster:
    return Cluster()  # type: ignore[no-untyped-call]


def _lead(place: Path) -> LeadIdentity:
    """Return a lead with one rank slot of 8 hosts."""
    lead = example_lead(place, "bench")
    slot = f"burst-0-[0-{_PODS - 1}]"
    hosts = (lead.hosts[0], *parse_hostlist(slot))
    bootstrap = Bootstrap(hosts=(lead.bootstrap.hosts[0], HostEntry(slot)))
    return msgspec.structs.replace(lead, hosts=hosts, bootstrap=bootstrap)


def _spec(lead: LeadIdentity, number: int) -> BurstSpec:
    """Return a burst. All have the hosts of the same rank slot, because none joins."""
    spec = example_spec(lead, 0, "nodes", _PODS)
    return msgspec.structs.replace(spec, burst_id=BurstId(f"burst-0-{number:06}"))


def _times(
    maker: PodBursts, lead: LeadIdentity, ways: dict[str, Observing], rounds: int
) -> dict[str, float]:
    """Return the median seconds until one burst runs, for each way."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, observing in ways.items():
            found[way].append(_round(maker, _spec(lead, 0), observing))
    return {way: statistics.median(times) for way, times in found.items()}


def _round(maker: PodBursts, spec: BurstSpec, observing: Observing) -> float:
    observing.observe()
    begun = time.monotonic()
    maker.provision(spec)
    while spec.burst_id not in _running(observing):
        _check(begun)
        time.sleep(_LOOK_S)
    taken = time.monotonic() - begun
    while True:
        try:
            maker.reap(spec.burst_id)
        except NotFound:
            return taken
        _check(begun)
        time.sleep(_LOOK_S)


def _running(observing: Observing) -> set[str]:
    found = observing.observe()
    return {status.burst_id for status in found if status.phase is Phase.RUNNING}


def _wait_running(observing: Observing, bursts: int) -> None:
    begun = time.monotonic()
    while len(_running(observing)) < bursts:
        _check(begun)
        time.sleep(2)


def _check(begun: float) -> None:
    if time.monotonic() - begun > _DEADLINE_S:
        raise TimeoutError("bursts neither came nor went")


def _cost(way: str, kubeconfig: str, namespace: str, calls: int) -> Cost:
    command = (sys.executable, "-m", "benchmarks.observing")
    arguments = (way, kubeconfig, namespace, str(calls))
    done = subprocess.run(
        [*command, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return msgspec.json.decode(done.stdout, type=Cost)


def _measures(
    bursts: int,
    costs: dict[str, Cost],
    alone: dict[str, float],
    among: dict[str, float],
) -> Sequence[Measure]:
    new, old = costs["watch"], costs["list"]
    short = [way for way, cost in costs.items() if cost.bursts < bursts]
    if short:
        raise RuntimeError(f"not all bursts were seen to run: {costs}")
    ratio = among["watch"] / alone["watch"]
    return [
        Measure("one call, list", old.call, "ms"),
        Measure("one call, watch", new.call, "ms"),
        Measure("of a core, list", old.share, "%"),
        Measure("of a core, watch", new.share, "%", Goal("<", 2)),
        Measure("list against watch, CPU", old.call / max(new.call, 0.1), "x"),
        Measure("memory more, list", old.memory, "MB"),
        Measure("memory more, watch", new.memory, "MB", Goal("<", 40)),
        Measure("one alone runs, list", alone["list"], "s"),
        Measure("one alone runs, watch", alone["watch"], "s"),
        Measure("one among all runs, list", among["list"], "s"),
        Measure("one among all runs, watch", among["watch"], "s"),
        Measure("among against alone, list", among["list"] / alone["list"], "x"),
        Measure("among against alone, watch", ratio, "x", Goal("<=", 1.2)),
    ]


if __name__ == "__main__":
    main_of(
        __doc__,
        measure,
        bursts=(500, "number of bursts"),
        calls=(30, "number of calls of observe, for each way"),
        rounds=(9, "number of rounds with one burst, for each way"),
    )
