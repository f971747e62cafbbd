# SPDX-License-Identifier: MIT
"""Followers resolve each other's names by the cluster's DNS, on real nodes."""

from __future__ import annotations

import json

import pytest
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import convert
from burst.kits.pods.names import INDEX
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import provider_table
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.fluxbursts import burst, reap_all
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux

pytestmark = [pytest.mark.nodes, needs_flux]
SLOT = PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1))


def provider_of(cluster: Cluster, namespace: str) -> KubeProvider:
    table = provider_table(cluster, namespace, names=True)
    settings = convert(KubeSettings, table, "providers.far")
    return KubeProvider("far", settings, "owner-1")


def pod_addresses(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the address of each pod, by its index."""
    found = cluster.kubectl("get", "pods", "-n", namespace, "-o", "json")
    return {
        pod["metadata"]["labels"][INDEX]: pod["status"]["podIP"]
        for pod in json.loads(found)["items"]
    }


def asked_of_all(lead: FluxLead, name: str) -> list[str]:
    """Return what each of the two followers finds of a name; "none" for nothing."""
    command = f"set -- $(getent ahostsv4 {name}); echo ${{1:-none}}"
    options = ("-N2", "--requires=burst", "--cwd=/")
    return lead.run(*options, "sh", "-c", command)


def wait_for_name(lead: FluxLead, name: str, address: str) -> None:
    """Wait until both followers find it: DNS hears of a pod a moment later."""
    wait_until(
        lambda: asked_of_all(lead, name) == [address, address],
        lambda: f"{name} to be {address}: {asked_of_all(lead, name)}",
    )


def test_names_of_hosts_and_of_pods_resolve_in_each_follower(
    cluster: Cluster, namespace: str
) -> None:
    provider = provider_of(cluster, namespace)
    with flux_lead(SLOT, address=OUTSIDE_IP) as lead:
        spec = burst(lead, provider, 2)
        addresses = pod_addresses(cluster, namespace)
        assert set(addresses) == {"0", "1"}
        for index, address in addresses.items():
            wait_for_name(lead, f"burst-0-{index}", address)
            wait_for_name(lead, f"{spec.burst_id}-{index}", address)
        reap_all(provider, spec)
