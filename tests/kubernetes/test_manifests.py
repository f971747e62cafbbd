# SPDX-License-Identifier: MIT
"""manifests/ as the API server takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.kubernetes.admit import check_restricted
from tests.kubernetes.kustomize import (
    MANIFESTS,
    apply_all,
    build,
    build_as_it_is,
    of_kind,
)

pytestmark = pytest.mark.kubernetes


def dry_run(cluster: Cluster, manifest: Path) -> list[str]:
    options = ("--dry-run=server", "--validate=strict", "-o", "name")
    return cluster.kubectl("apply", *options, "-f", manifest).split()


def check_lead(cluster: Cluster, namespace: str, found: list[Any]) -> None:
    """Check that the lead's pod keeps to the restricted standard."""
    apply_all(cluster, found, "Namespace", "ServiceAccount")
    check_restricted(cluster, namespace, of_kind(found, "Job")["spec"]["template"])


def test_the_plain_overlay_is_accepted_with_a_priority_and_its_secret(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/plain", namespace=namespace)
    assert sorted(dry_run(cluster, built)) == [
        "clusterrole.rbac.authorization.k8s.io/burst-daemon-nodes",
        "clusterrolebinding.rbac.authorization.k8s.io/burst-daemon-nodes",
        "configmap/burst-lead",
        "job.batch/lead",
        f"namespace/{namespace}",
        "networkpolicy.networking.k8s.io/burst-lead",
        "networkpolicy.networking.k8s.io/default-deny",
        "persistentvolumeclaim/burst-state",
        "poddisruptionbudget.policy/burst-lead",
        "role.rbac.authorization.k8s.io/burst-lead",
        "rolebinding.rbac.authorization.k8s.io/burst-lead",
        "service/burst-lead",
        "serviceaccount/burst-daemon",
    ]
    # 0400 is 256; written the other way it would be a mode that leaves it open.
    assert "defaultMode: 256" in built.read_text()
    check_lead(cluster, namespace, list(yaml.safe_load_all(built.read_text())))
    text = (MANIFESTS / "secret.example.yaml").read_text()
    secret = tmp_path / "secret.yaml"
    secret.write_text(text.replace("namespace: burst", f"namespace: {namespace}"))
    assert dry_run(cluster, secret) == ["secret/burst-curve"]
    parts = [os.path.relpath(MANIFESTS / "parts" / "priority", tmp_path.resolve())]
    built = build(cluster, tmp_path, "overlays/plain", components=parts)
    job = of_kind(yaml.safe_load_all(built.read_text()), "Job")
    assert job["spec"]["template"]["spec"]["priorityClassName"] == "burst-lead"


def test_the_far_namespace_is_accepted_with_all_that_is_optional(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    parts = [
        os.path.relpath(MANIFESTS / "parts" / part, tmp_path.resolve())
        for part in ("quota", "miniclusters", "kueue")
    ]
    built = build(cluster, tmp_path, "far", namespace=namespace, components=parts)
    role = "role.rbac.authorization.k8s.io/burst-daemon"
    binding = "rolebinding.rbac.authorization.k8s.io/burst-daemon"
    assert sorted(dry_run(cluster, built)) == [
        f"namespace/{namespace}",
        "networkpolicy.networking.k8s.io/burst-followers",
        "networkpolicy.networking.k8s.io/default-deny",
        "resourcequota/burst",
        role,
        f"{role}-kueue",
        f"{role}-miniclusters",
        binding,
        f"{binding}-kueue",
        f"{binding}-miniclusters",
    ]
    made = of_kind(yaml.safe_load_all(built.read_text()), "Namespace")
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == (
        "baseline"
    )


def test_in_gke_the_lead_is_restricted_and_the_daemon_alone_has_a_token(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/gke", namespace=namespace)
    assert "job.batch/lead" in dry_run(cluster, built)
    found = list(yaml.safe_load_all(built.read_text()))
    check_lead(cluster, namespace, found)
    pod = of_kind(found, "Job")["spec"]["template"]["spec"]
    assert not pod["automountServiceAccountToken"]
    tokens = {
        volume["name"]
        for volume in pod["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
        if "serviceAccountToken" in source
    }
    assert tokens == {"token", "google"}
    mounts = {
        container["name"]: {m["name"] for m in container["volumeMounts"]} & tokens
        for container in (*pod["initContainers"], *pod["containers"])
    }
    assert {name for name, its in mounts.items() if its} == {"burst"}
    assert "annotations" not in of_kind(found, "ServiceAccount")["metadata"]
    (settings,) = (
        thing["data"]["burst.toml"]
        for thing in found
        if thing["metadata"]["name"] == "burst-lead" and thing["kind"] == "ConfigMap"
    )
    assert 'type = "gke"' in settings


def apply_as_it_is(
    cluster: Cluster, folder: Path, part: str, names: Mapping[str, str]
) -> list[Any]:
    """Check that a part is taken in one go, and the lead's pod admitted; return it."""
    found = build_as_it_is(cluster, part, names)
    file = folder / "built.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    taken = dry_run(cluster, file)
    assert {f"namespace/{name}" for name in names.values()} <= set(taken)
    assert len(taken) == len(found)
    check_lead(cluster, names["burst"], found)
    return found


def test_an_ensemble_is_applied_in_one_go(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Lead, members' namespace and CronJob; their pods keep to the standard there."""
    with new_namespace(cluster, "members") as far:
        names = {"burst": namespace, "burst-far": far}
        found = apply_as_it_is(cluster, tmp_path, "ensemble", names)
        gc = of_kind(found, "CronJob")
        check_restricted(cluster, far, gc["spec"]["jobTemplate"]["spec"]["template"])


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_with_an_agent_is_applied_with_its_lead(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Both sides in one go; the lead's pod keeps to the standard with its Secret."""
    with new_namespace(cluster, "member") as far:
        names = {"burst": namespace, "burst-member": far}
        found = apply_as_it_is(cluster, tmp_path, "ensemble-agent", names)
        made = {(thing["kind"], thing["metadata"]["name"]) for thing in found}
        assert {("MiniCluster", "research"), ("Service", "burst-daemon")} <= made
        pod = of_kind(found, "Job")["spec"]["template"]["spec"]
        volume = {"secretName": "burst-http-token", "defaultMode": 0o400}
        assert {"name": "http-token", "secret": volume} in pod["volumes"]
        mounts = {
            container["name"]
            for container in (*pod["initContainers"], *pod["containers"])
            if "http-token" in {mount["name"] for mount in container["volumeMounts"]}
        }
        assert mounts == {"burst"}, "jobs on the lead's node do not see the token"
