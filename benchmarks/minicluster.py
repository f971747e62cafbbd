# SPDX-License-Identifier: MIT
"""The time from creating objects to brokers online on real nodes, against plain pods.

Ours: `burst_kube` makes a burst of two followers; the time ends when the lead has both
online.
Baseline: an indexed Job of two pods of the same image that only sleep, on the same two
nodes; the time ends when the API server says that both run. The pods are bare in one
variant; in another they mount a ConfigMap and a Secret like a burst, which shows the
kubelets' part of the difference. Rounds take turns in one run. The tail matters: a
start-up fault shows in the spread, not in the median. One such fault is Kubernetes'
own: a kubelet that gets a pod before the API server's node authorizer knows it is
denied the Secret, and asks again only after a second ("failed to sync secret cache:
timed out").

It uses real Flux outside a Kubernetes of two kubelets, which is made for the run: it
needs root, Debian, Go and `flux`.

    python benchmarks/minicluster.py [--json] [--rounds 20]
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from burst_kube.provider import KubeProvider, KubeSettings

from benchmarks.plainpods import NODES, Plain
from benchmarks.real_nodes import given_cluster, main_on_nodes
from benchmarks.table import Goal, Measure
from burst import flux
from burst.config import convert
from burst.errors import NotFound
from burst.kits.kube import Cluster, Kubeconfig
from burst.lead import Lead
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from burst.testing import example_spec
from tests.e2e.programs import provider_table
from tests.kubelab.cluster import Joined
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.kubernetes.access import new_namespace
from tests.support.fluxlead import flux_lead

DEADLINE_S = 60.0
_LOOK_S = 0.01


def measure(rounds: int) -> Sequence[Measure]:
    """Run rounds in turns, each timed from the first call that creates an object."""
    slot = PlannedSlot(hosts=f"burst-0-[0-{NODES - 1}]", shape=Shape(1))
    with (
        given_cluster() as given,
        new_namespace(given, "bench") as namespace,
        flux_lead(slot, address=OUTSIDE_IP) as stand,
        closing(flux.connect(stand.files.uri)) as lead,
        closing(Cluster(Kubeconfig(str(given.kubeconfig), ""))) as cluster,
    ):
        settings = convert(KubeSettings, _table(given, namespace), "providers.far")
        ours = Ours(KubeProvider("far", settings, "bench"), lead, stand.identity())
        bare = Plain(cluster, namespace, mounts=False)
        mounted = Plain(cluster, namespace, mounts=True)
        bare.round()  # the first pods of a node take longer than any later ones
        times = [(ours.round(), bare.round(), mounted.round()) for _ in range(rounds)]
    return _measures(*(list(each) for each in zip(*times, strict=True)))


class Ours:
    """Makes bursts of burst_kube that join a lead."""

    def __init__(self, provider: KubeProvider, lead: Lead, identity: Any) -> None:
        self._provider = provider
        self._lead = lead
        self._identity = identity
        self._changed = threading.Event()
        lead.listen(self._changed.set)
        self._count = 0

    def round(self) -> float:
        """Make one burst; return its seconds. Nothing is left afterwards."""
        spec = example_spec(self._identity, self._count, "nodes", NODES)
        ranks = frozenset(spec.ranks)
        begun = time.monotonic()
        self._provider.provision(spec)
        self._wait(lambda: ranks <= self._lead.observe().online)
        taken = time.monotonic() - begun
        self._wait(lambda: self._gone(spec.burst_id))
        self._wait(lambda: not ranks & self._lead.observe().online)
        return taken

    def _gone(self, burst_id: Any) -> bool:
        try:
            self._provider.reap(burst_id)
        except NotFound:
            return True
        return False

    def _wait(self, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > ends:
                raise TimeoutError("the burst neither came nor went")
            self._changed.wait(_LOOK_S)
            self._changed.clear()


def _table(given: Joined, namespace: str) -> dict[str, Any]:
    offers = {"nodes": {"cores": 1, "max_nodes": NODES, "cpu": "100m"}}
    return provider_table(given, namespace, offers=offers)


def _measures(
    ours: list[float], bare: list[float], mounted: list[float]
) -> Sequence[Measure]:
    rows = {
        "burst online": ours,
        "bare pods running": bare,
        "pods with mounts running": mounted,
    }
    found = []
    for what, times in rows.items():
        found += [
            Measure(f"{what}, mean", statistics.mean(times), "s"),
            Measure(f"{what}, median", statistics.median(times), "s"),
            Measure(f"{what}, sd", statistics.stdev(times), "s"),
            Measure(f"{what}, p95", _p95(times), "s"),
        ]
    against_mounted = statistics.mean(ours) / statistics.mean(mounted)
    against_bare = statistics.mean(ours) / statistics.mean(bare)
    by_median = statistics.median(ours) / statistics.median(bare)
    spread = _p95(ours) / statistics.median(ours)
    goal = Goal("<=", 1.1)
    return [
        *found,
        Measure("burst against pods with mounts, mean", against_mounted, "x", goal),
        Measure("burst against bare pods, mean", against_bare, "x", goal),
        Measure("burst against bare pods, median", by_median, "x", goal),
        Measure("burst, p95 against its median", spread, "x", Goal("<=", 1.2)),
    ]


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    main_on_nodes(
        "benchmarks.minicluster", __doc__, measure, ["flux"], rounds=(20, "of each")
    )
