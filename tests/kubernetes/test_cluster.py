# SPDX-License-Identifier: MIT
"""The cluster of the other tests is a real one: a Job gets pods, RBAC refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.kubelab.build import Unavailable
from tests.kubernetes.access import GIVEN, AnyCluster, GivenCluster, find_cluster

pytestmark = pytest.mark.kubernetes
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "pair"},
    "spec": {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "local.test/none:1"}],
            }
        },
    },
}


def test_a_job_gets_its_pods(cluster: AnyCluster, namespace: str) -> None:
    cluster.kubectl("create", "-n", namespace, "-f", "-", manifest=JOB)

    def indexes() -> list[str]:
        pods = json.loads(cluster.kubectl("get", "pods", "-n", namespace, "-o", "json"))
        index = "batch.kubernetes.io/job-completion-index"
        return sorted(pod["metadata"]["labels"][index] for pod in pods["items"])

    cluster.wait_for("two pods", lambda: indexes() == ["0", "1"])


def test_a_token_without_rights_reads_nothing(
    cluster: AnyCluster, namespace: str
) -> None:
    token = cluster.kubectl("create", "token", "default", "-n", namespace).strip()
    config = cluster.write_kubeconfig(namespace, {"token": token})
    with pytest.raises(RuntimeError, match="Forbidden"):
        cluster.kubectl("get", "pods", "-n", namespace, f"--kubeconfig={config}")


def test_a_named_cluster_is_used_as_it_is(
    cluster: AnyCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", cluster.env()["PATH"])
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv(GIVEN, str(cluster.kubeconfig))
    with find_cluster() as given:
        assert isinstance(given, GivenCluster)
        assert given.get(f"/api/v1/namespaces/{namespace}")
        assert given.get("/api/v1/namespaces/not-there") is None
        token = given.kubectl("create", "token", "default", "-n", namespace).strip()
        config = given.write_kubeconfig("someone", {"token": token})
        assert config.stat().st_mode & 0o077 == 0
        with pytest.raises(RuntimeError, match="Forbidden"):
            given.kubectl("get", "pods", "-n", namespace, f"--kubeconfig={config}")
    assert not config.exists()


def test_a_named_cluster_needs_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(GIVEN, os.devnull)
    with pytest.raises(Unavailable, match="kubectl is not on PATH"):
        find_cluster()
