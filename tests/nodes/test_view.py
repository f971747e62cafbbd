# SPDX-License-Identifier: MIT
"""Followers in an image without Flux take it from a view, on real nodes."""

from __future__ import annotations

import pytest
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import convert
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import FLUX, host_paths
from tests.e2e.shellimage import VIEW_IMAGE, VIEW_MARK, flux_prefix
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubelab.pods import mounts_beside
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.fluxbursts import burst, reap_all
from tests.support.fluxlead import flux_lead, needs_flux
from tests.support.pod_words import pod_words
from tests.support.waiting import HANG_S

SLOT = PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1))
pytestmark = [
    pytest.mark.nodes,
    needs_flux,
    pytest.mark.skipif(
        str(flux_prefix()) == "/usr",
        reason="Flux is among the system's own files, which a view would hide",
    ),
]


def settings(cluster: Cluster, namespace: str, source: str) -> KubeSettings:
    """Return settings by which nothing but the view has Flux at its prefix."""
    table = {
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        # What an application's image has is this machine's; its Flux is hidden there.
        "image": PAUSE_IMAGE,
        "host_paths": host_paths(*mounts_beside(FLUX)),
        "one_per_node": False,
        "view": VIEW_IMAGE,
        "view_paths": [f"{source}:{flux_prefix()}"],
        "pod": pod_words({"PATH": "/usr/bin:/bin", "HOME": "/tmp"}),
        "offers": {"nodes": {"cores": 1, "max_nodes": 4, "cpu": "100m"}},
    }
    return convert(KubeSettings, table, "providers.far")


def test_they_join_and_run_a_job(cluster: Cluster, namespace: str) -> None:
    found = settings(cluster, namespace, "/opt/views/._view/*")
    provider = KubeProvider("far", found, "owner-1", timeout=HANG_S)
    with flux_lead(SLOT, address=OUTSIDE_IP) as lead:
        spec = burst(lead, provider, 2)
        names = cluster.kubectl("get", "pods", "-n", namespace, "-o", "name")
        for pod in names.split():
            where = ("exec", "-n", namespace, pod, "-c", "broker", "--")
            mark = f"{flux_prefix()}/{VIEW_MARK}"
            assert cluster.kubectl(*where, "cat", mark) == "yes\n"
            look = ("sh", "-c", "readlink /proc/[0-9]*/exe || :")
            programs = cluster.kubectl(*where, *look).split()
            assert any(path.startswith(f"{flux_prefix()}/") for path in programs)
        reap_all(provider, spec)
