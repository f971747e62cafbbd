# SPDX-License-Identifier: MIT
"""burst_kube's pods, on real nodes, join a real lead outside and run a job."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from burst_kube import KubeProvider, KubeSettings

from burst.errors import NotFound
from burst.kits.minicluster import OfferTable
from burst.model.shape import Shape
from burst.provider import BurstSpec, Phase
from burst.shell.leadplan import RankSlot
from burst.testing import example_spec
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.pods import SYSTEM, flux_mounts, python_mounts
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.kubernetes.access import GivenCluster
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux, wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture
def settings(cluster: GivenCluster, namespace: str) -> KubeSettings:
    """This machine's programs in pods of an empty image, as root, as this is run."""
    return KubeSettings(
        kubeconfig=str(cluster.kubeconfig),
        namespace=namespace,
        image=PAUSE_IMAGE,
        image_pull="Never",
        offers={"nodes": OfferTable(cores=1, max_nodes=4, cpu="100m")},
        host_paths=existing(["/etc/ld.so.cache", *SYSTEM, *python_mounts()]),
    )


def existing(paths: list[str]) -> tuple[str, ...]:
    """Return those that exist, links followed too, less those that lie in another."""
    found: list[Path] = []
    for path in sorted({Path(p) for n in paths for p in (n, os.path.realpath(n))}):
        if path.exists() and not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return tuple(map(str, found))


def reap_all(provider: KubeProvider, spec: BurstSpec) -> None:
    """Reap until nothing is left."""

    def gone() -> bool:
        try:
            provider.reap(spec.burst_id)
        except NotFound:
            return True
        return False

    wait_until(gone, f"{spec.burst_id} to be gone")


@pytest.fixture
def flux_settings(settings: KubeSettings) -> KubeSettings:
    """The flux on PATH too."""
    flux = shutil.which("flux") or ""
    return msgspec.structs.replace(
        settings,
        host_paths=existing([*settings.host_paths, *flux_mounts()]),
        flux=flux,
        environment={"PATH": f"{Path(flux).parent}:/usr/bin:/bin", "HOME": "/tmp"},
    )


def burst(lead: FluxLead, provider: KubeProvider, nodes: int) -> BurstSpec:
    """Bring up a burst of so many nodes, run a job on it, and return its spec."""
    spec = example_spec(lead.identity(), 0, "nodes", nodes)
    provider.provision(spec)
    wait_until(lambda: set(spec.hosts) <= lead.online(), "the followers to join")
    (status,) = provider.observe()
    assert status.phase is Phase.RUNNING, status
    command = ("flux", "getattr", "hostname")
    names = lead.run(f"-N{nodes}", "--requires=burst", "--cwd=/", *command)
    assert sorted(names) == sorted(spec.hosts)
    return spec


@needs_flux
def test_flux_brokers_in_pods_join_and_leave(flux_settings: KubeSettings) -> None:
    provider = KubeProvider("far", flux_settings, "owner-1")
    slot = RankSlot(hosts="burst-0-[0-1]", shape=Shape(1))
    with flux_lead(slot, address=OUTSIDE_IP) as lead:
        spec = burst(lead, provider, 2)
        reap_all(provider, spec)
        wait_until(lambda: not lead.online() & set(spec.hosts), "the lead to miss them")


@needs_flux
def test_through_a_gateway(flux_settings: KubeSettings, namespace: str) -> None:
    shared = msgspec.structs.replace(flux_settings, one_per_node=False)
    provider = KubeProvider("far", shared, "owner-1")
    gateway = f"tcp://burst-0.{namespace}.svc.cluster.local:8050"
    slot = RankSlot(hosts="burst-0-[0-2]", shape=Shape(1), gateway=gateway)
    with flux_lead(slot, address=OUTSIDE_IP, gateways=True) as lead:
        spec = burst(lead, provider, 3)
        reap_all(provider, spec)
