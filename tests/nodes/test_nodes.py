# SPDX-License-Identifier: MIT
"""Pods of this machine's own Python run on the real nodes and reach this process."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.kubelab.cluster import Cluster
from tests.kubelab.pods import pod_spec, python_mounts
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.nodes
CALL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])))"


def test_a_pod_reaches_what_listens_outside(cluster: Cluster, namespace: str) -> None:
    with socket.create_server((OUTSIDE_IP, 0)) as server:
        server.settimeout(60)
        port = str(server.getsockname()[1])
        command = [sys.executable, "-c", CALL, OUTSIDE_IP, port]
        spec = pod_spec(command, python_mounts(sys.executable))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "caller"}}
        cluster.kubectl(
            "create", "-n", namespace, "-f", "-", manifest=pod | {"spec": spec}
        )
        connection, (address, _) = server.accept()
        connection.close()
    assert address.startswith("10.244.")
    done = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl(
        "wait", "-n", namespace, "pod/caller", done, f"--timeout={HANG_S:g}s"
    )
