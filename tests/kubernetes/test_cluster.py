# SPDX-License-Identifier: MIT
"""A cluster that is named is used instead of kubelab's, and RBAC refuses there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kubelab.build import Unavailable
from tests.kubernetes.access import GIVEN, AnyCluster, GivenCluster, find_cluster

pytestmark = pytest.mark.kubernetes


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
