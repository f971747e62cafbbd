# SPDX-License-Identifier: MIT
"""The GKE of these tests as a provider's backend."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from burst.errors import Transient
from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment, missing
from tests.plugins.gke.gke import STOCKOUT, Denied, Fate, Gke
from tests.plugins.gke.kubernetes import Kubernetes
from tests.support.interrupted import Interrupted

_METHODS = (
    *("list_clusters", "get_cluster", "list_operations"),
    *("create_cluster", "create_node_pool", "delete_cluster", "delete_node_pool"),
    "set_node_pool_autoscaling",
)


class GkeBackend(Backend):
    """What a test does to Google's service, and to the API servers of its clusters."""

    def __init__(
        self,
        gke: Gke,
        kubernetes: Kubernetes,
        make: Callable[[str, str], Provider],
        *,
        orders: bool,
    ) -> None:
        self.gke = gke
        self.kubernetes = kubernetes
        self.make = make
        self.orders = orders
        """Whether nodes are ordered of Google with each burst."""

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        for method in _METHODS:
            self.gke.denials[method] = [
                Denied("UNAVAILABLE", "Socket closed") for _ in range(100)
            ]
        self.kubernetes.trouble = Transient("no answer")
        try:
            yield
        finally:
            self.gke.denials.clear()
            self.kubernetes.trouble = None

    def full(self, owner: str) -> Provider:
        if not self.orders:
            missing("full", "a backend without free capacity")
        if self.gke.vms:
            # What exists may grow up to here.
            self.gke.room = sum(map(len, self.gke.vms.values()))
            self.kubernetes.full = True
        else:
            self.gke.fates = [Fate(conditions=[STOCKOUT], remains="ERROR")]
        return self.make(owner, "gke")

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        if not self.orders:
            missing("stalled", "a backend in which nothing makes progress")
        self.gke.stalled = True
        yield
        self.gke.stalled = False

    def end(self, spec: BurstSpec, host: str) -> None:
        for key, entry in self.kubernetes.bursts.items():
            if key[-1] == spec.burst_id:
                entry.ended.add(host)

    def crashing(self, owner: str, when: Moment) -> Provider:
        if when == "before":
            return Interrupted(self.make(owner, "gke"), self.unreachable)
        self.gke.drops = {"create_cluster": 1, "create_node_pool": 1}
        self.kubernetes.crash = not self.orders
        return self.make(owner, "gke")

    def named(self, owner: str, name: str) -> Provider:
        return self.make(owner, name)

    def left(self, spec: BurstSpec) -> Sequence[str]:
        inside = [str(key) for key in self.kubernetes.bursts if key[3] == spec.burst_id]
        return [*self.gke.things(), *(inside if not self.orders else ())]
