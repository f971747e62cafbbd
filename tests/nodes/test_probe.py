# SPDX-License-Identifier: MIT
"""A pod on a real node tries whether followers would reach the lead."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import msgspec
import pytest
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import convert
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.e2e.programs import host_paths
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.waiting import wait_until

pytestmark = pytest.mark.nodes


@pytest.fixture
def settings(cluster: Cluster, namespace: str) -> KubeSettings:
    """This machine's Python in pods of an empty image."""
    table = {
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        "timeout": "2m",
        "image": PAUSE_IMAGE,
        "image_pull": "Never",
        "offers": {"nodes": {"cores": 1, "max_nodes": 4, "cpu": "100m"}},
        "host_paths": host_paths(),
        "python": sys.executable,
    }
    return convert(KubeSettings, table, "providers.far")


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    return msgspec.structs.replace(
        example_lead(tmp_path), follower_module="burst_embedded"
    )


def probe(settings: KubeSettings, lead: LeadIdentity, address: str) -> Finding:
    provider = KubeProvider("far", settings, lead.owner)
    told = msgspec.structs.replace(lead, endpoint=f"tcp://{address}")
    found, *others = provider.probe(told, print)
    assert all(other.level is not Level.WRONG for other in others)
    wait_until(lambda: not provider.observe(), provider.observe)
    return found


@pytest.mark.parametrize("python", [sys.executable, "/no/python"])
def test_it_reaches_what_listens(
    settings: KubeSettings, lead: LeadIdentity, python: str
) -> None:
    """With Python, and with bash where there is none."""
    settings = msgspec.structs.replace(settings, python=python)
    with socket.create_server((OUTSIDE_IP, 0)) as server:
        address = f"{OUTSIDE_IP}:{server.getsockname()[1]}"
        found = probe(settings, lead, address)
        assert found == Finding(Level.OK, f"a pod there reaches tcp://{address}")
    found = probe(settings, lead, address)
    assert found.what.endswith(f"reach tcp://{address}: nothing listens there")


def test_it_tells_an_image_that_cannot_be_had(
    settings: KubeSettings, lead: LeadIdentity
) -> None:
    absent = msgspec.structs.replace(settings, image="local.test/none:1")
    found = probe(absent, lead, f"{OUTSIDE_IP}:1")
    assert "image local.test/none:1 cannot be pulled: ErrImageNeverPull" in found.what
