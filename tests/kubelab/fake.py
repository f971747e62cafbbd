# SPDX-License-Identifier: MIT
"""Fake nodes for a Cluster: pods get bound and change phase, but nothing runs.

Either kwok plays the kubelet, or the test does, with create_node() and patch_pod_status().
"""

import json

from tests.kubelab import build
from tests.kubelab.programs import free_ports

STAGES = ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-delete")
SIZE = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def create_node(cluster, name, ready=True, labels=(), **spec):
    """A node that the scheduler binds pods to."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **dict(labels)}}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}] if ready else []
    status = {"capacity": SIZE, "allocatable": SIZE, "conditions": conditions}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}
    node["status"] = status
    cluster.kubectl("create", "-f", "-", manifest=node)


def patch_pod_status(cluster, namespace, pod, status):
    """Writes what a kubelet would: {"phase": "Running", "podIP": "10.1.0.9"} and the like."""
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", "pod", pod, "-n", namespace, "--subresource=status", "-p", patch)


def start_kwok(cluster, nodes=2):
    """Ready nodes kwok-0, ...: pods run at once, those of Jobs too, and do not end."""
    paths = build.ensure(kwok=True)
    config = cluster.root / "kwok.yaml"
    config.write_text(
        "\n---\n".join((paths.kwok_stages / f"{name}.yaml").read_text() for name in STAGES)
    )
    cluster.spawn(
        "kwok",
        paths.kwok,
        *(f"--kubeconfig={cluster.kubeconfig}", f"--config={config}", "--manage-all-nodes=true"),
        *(f"--server-address=127.0.0.1:{free_ports(1)[0]}", "--node-ip=127.0.0.1"),
        env={"HOME": str(cluster.root)},
    )
    for number in range(nodes):
        create_node(cluster, f"kwok-{number}", ready=False)
    cluster.wait_for("kwok", lambda: cluster.ready_nodes() == nodes, needs=["kwok"])
