# SPDX-License-Identifier: MIT
"""burst_kube's pods, on real nodes, join a real Flux lead outside and run a job."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import convert
from burst.kits.pods.names import INDEX
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import BURST, provider_table, run
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.fluxbursts import burst, check_hosts, reap_all
from tests.nodes.isolated_site import container, isolated_site
from tests.nodes.resizing import SLOT as SLOT_OF_FOUR
from tests.nodes.resizing import check_resizes
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.nodes, needs_flux]
KINDS = "pods,jobs,configmaps,secrets,services"
SLOT = PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1))
FOLLOWERS = 3


@pytest.fixture
def table(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """Of pods that run as root, as this is run."""
    return provider_table(cluster, namespace)


def pod_addresses(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the address of each pod, by its index."""
    found = cluster.kubectl("get", "pods", "-n", namespace, "-o", "json")
    return {
        pod["metadata"]["labels"][INDEX]: pod["status"]["podIP"]
        for pod in json.loads(found)["items"]
    }


def around_the_broker() -> dict[str, Any]:
    """Return the spec of pods that run commands before and after a broker."""
    mounts = [{"name": "made", "mountPath": "/made"}]
    before = ["sh", "-c", "echo ready > /made/pre"]
    after = {"exec": {"command": ["sh", "-c", "cat /made/pre"]}}
    return {
        "volumes": [{"name": "made", "emptyDir": {}}],
        "initContainers": [container("pre", command=before, volumeMounts=mounts)],
        "containers": [
            {"name": "broker", "volumeMounts": mounts, "lifecycle": {"preStop": after}}
        ],
        # A shell that kept SIGTERM to itself would hold pods for all of it.
        "terminationGracePeriodSeconds": 300,
    }


def wait_for_name(lead: FluxLead, name: str, address: str) -> None:
    """Wait until all followers find it: DNS hears of a pod a moment later."""
    command = f"set -- $(getent ahostsv4 {name}); echo ${{1:-none}}"

    def found() -> list[str]:
        options = (f"-N{FOLLOWERS}", "--requires=burst", "--cwd=/")
        return lead.run(*options, "sh", "-c", command)

    wait_until(
        lambda: found() == [address] * FOLLOWERS,
        lambda: f"{name} to be {address}: {found()}",
    )


def test_they_join_through_a_gateway_with_names_and_what_runs_around_them(
    table: dict[str, Any], cluster: Cluster, namespace: str
) -> None:
    settings = convert(KubeSettings, {**table, "names": True}, "providers.far")
    around = settings.with_pod_spec(around_the_broker())
    provider = KubeProvider("far", around, "owner-1", timeout=HANG_S)
    gateway = f"tcp://burst-0.{namespace}.svc.cluster.local:8050"
    slot = PlannedSlot(
        hosts=f"burst-0-[0-{FOLLOWERS - 1}]", shape=Shape(1), gateway=gateway
    )
    with flux_lead(slot, address=OUTSIDE_IP, gateways=True) as lead:
        spec = burst(lead, provider, FOLLOWERS)
        read = ("--requires=burst", "--cwd=/", "cat", "/made/pre")
        assert lead.run(f"-N{FOLLOWERS}", *read) == ["ready"] * FOLLOWERS
        addresses = pod_addresses(cluster, namespace)
        assert set(addresses) == {str(index) for index in range(FOLLOWERS)}
        for index, address in addresses.items():
            wait_for_name(lead, f"burst-0-{index}", address)
            wait_for_name(lead, f"{spec.burst_id}-{index}", address)
        reap_all(provider, spec)
        wait_until(lambda: not lead.online() & set(spec.hosts), "the lead to miss them")


def test_a_burst_grows_and_shrinks_while_a_job_runs(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    user = os.geteuid()
    with isolated_site(cluster, namespace, tmp_path, SLOT_OF_FOUR, user=user) as site:
        check_resizes(site, "job")


def test_by_hand_with_run_burst(
    cluster: Cluster, table: dict[str, Any], tmp_path: Path
) -> None:
    """One command from inside the lead, and one that takes it down again."""
    config = tmp_path / "burst.toml"
    config.write_text(tomli_w.dumps({"providers": {"far": {"type": "kube", **table}}}))
    program = str(Path(BURST).with_name("run-burst"))
    with flux_lead(SLOT, address=OUTSIDE_IP) as lead:
        where = ["-c", str(config), "--uri", lead.files.uri]
        doctor = [BURST, "doctor", *where, "--provider", "far", "--probe"]
        assert f"a pod there reaches tcp://{OUTSIDE_IP}:" in run(*doctor)
        command = [program, *where]
        command += ["--provider", "far", "--name", "burst-0"]
        assert "burst-0-[0-1] joined as ranks 1-2" in run(*command)
        check_hosts(lead, "burst-0-0", "burst-0-1")
        assert "is gone: " in run(*command, "--down")
    ours = ("-n", table["namespace"], "-l", "burst.flux-framework.org/owner")

    def left() -> str:
        return cluster.kubectl("get", KINDS, *ours, "-o", "name")

    wait_until(lambda: not left(), left)
