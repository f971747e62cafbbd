# SPDX-License-Identifier: MIT
"""What an engine counts as paid for, beside the VMs that there are in a GKE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burst.core.resize_request import WantedSize, resize_burst
from burst.kits import certificate
from burst.provider import Phase
from tests.builders import identity, whole
from tests.fakes import FakeLead
from tests.plugins.gke.apis import Google
from tests.plugins.gke.build import OFFER, POOL, World
from tests.sim import Sim

OFFERS = {
    OFFER: {
        "machine_type": "n2-standard-8",
        "max_nodes": 4,
        "gpus": 1,
        "accelerator": "nvidia-l4",
        "price": 2.0,
    }
}


class GkeSim(Sim):
    """An engine with a GKE, whose pods join the fake lead once they are on a VM."""

    def __init__(self, world: World, at: Path) -> None:
        self.world = world
        path = at / "lead.cert"
        certificate.write(certificate.create("lead"), path)
        super().__init__(FakeLead(identity(certificate=str(path))))

    def provider_type(  # type: ignore[override]
        self, name: str, _: Any, owner: str, __: Any
    ) -> Any:
        return self.world.make(owner, offers=OFFERS, **POOL)

    def meet(self) -> None:
        ranks = {host: rank for rank, host in enumerate(self.lead.known.hosts)}
        found = self.world.kubernetes.bursts.values()
        up = {host for e in found if e.ends_in is None for host in e.nodes}
        own = {r for r, host in enumerate(self.lead.known.hosts) if host[:4] == "lead"}
        for rank in self.lead.online - own - {ranks[host] for host in up}:
            self.lead.lose(rank)
        self.lead.online |= {ranks[host] for host in up}

    @property
    def vms(self) -> dict[str, int | None]:
        (vms,) = self.world.gke.vms.values() or ({},)
        return vms

    def counted(self) -> int:
        """Return how many nodes of the burst the ledger counts now."""
        entry = self.engine.snapshot.records.entries[self.burst.id]
        return entry.nodes - entry.use.absent

    def ask(self, nodes: int) -> None:
        burst = self.burst.id
        self.engine.post(
            lambda records, world, settings, now: resize_burst(
                records, world, settings, WantedSize(burst, nodes), now
            )
        )
        self.tick()

    def sized(self, nodes: int) -> bool:
        return self.burst.resize is None and self.burst.lease.nodes == nodes


@pytest.mark.parametrize(
    ("by_itself", "restarts"),
    [(True, True), (False, False), (False, True)],
    ids=["the daemon deletes", "the autoscaler deletes", "and the daemon restarts"],
)
def test_a_node_is_counted_as_long_as_its_vm_exists(
    pooled: World, google: Google, tmp_path: Path, *, by_itself: bool, restarts: bool
) -> None:
    if not by_itself:
        google.failing = {"deleteInstances": 403}
    sim = GkeSim(pooled, tmp_path)
    pooled.gke.looks_to_delete = 40
    sim.tick(2)
    job = sim.lead.submit(whole(1, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running(), 200)
    sim.ask(4)
    sim.until(lambda: sim.sized(4), 200)
    assert len(sim.vms) == sim.counted() == 4
    kept = dict(next(iter(pooled.kubernetes.bursts.values())).nodes)
    sim.ask(1)
    for second in range(400):
        sim.tick()
        if restarts and second == 30:
            sim.boot()
        if second == 60 and not by_itself:
            (group,) = pooled.gke.vms
            busy = next(iter(pooled.kubernetes.bursts.values())).nodes.values()
            pooled.gke.delete_vms(group, [vm for vm in sim.vms if vm not in busy])
        if sim.sized(1):
            break
        assert sim.counted() >= len(sim.vms), f"{second}: {sim.story()}"
        assert job in sim.lead.running()
    assert sim.sized(1), sim.story()
    assert second > 40 or by_itself
    assert set(sim.vms) == {kept["burst-0-0"]}
    assert sim.counted() == 1
    assert not sim.lead.drained
    status = pooled.provider.observe()[0]
    assert [f.phase for f in status.followers] == [Phase.RUNNING]


def test_a_growth_without_machines_is_given_back_and_costs_nothing(
    pooled: World, tmp_path: Path
) -> None:
    sim = GkeSim(pooled, tmp_path)
    sim.tick(2)
    job = sim.lead.submit(whole(1, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running(), 200)
    pooled.gke.room = 2
    pooled.kubernetes.full = True
    sim.ask(4)
    sim.until(lambda: sim.sized(1), 200)
    assert "shrunk" in sim.names()
    assert job in sim.lead.running()
    assert len(sim.vms) == sim.counted() == 1
