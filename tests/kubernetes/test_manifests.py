# SPDX-License-Identifier: MIT
"""manifests/ as the API server takes them, and what the daemon's account may do."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.access import AnyCluster
from tests.kubernetes.kustomize import MANIFESTS, build
from tests.manifests.rights import NEEDED

pytestmark = pytest.mark.kubernetes
ACCOUNT = "burst-daemon"
RIGHTS = (
    *("ServiceAccount", "Role", "RoleBinding"),
    *("ClusterRole", "ClusterRoleBinding"),
)
FORBIDDEN = (
    ("", "pods", "create"),
    ("", "pods/exec", "create"),
    *(
        ("", "secrets", verb)
        for verb in ("get", "list", "watch", "patch", "update", "delete")
    ),
    ("", "secrets", "deletecollection"),
    ("", "serviceaccounts/token", "create"),
    ("rbac.authorization.k8s.io", "roles", "patch"),
    ("apps", "deployments", "create"),
)


def dry_run(cluster: AnyCluster, manifest: Path) -> list[str]:
    options = ("--dry-run=server", "--validate=strict", "-o", "name")
    return cluster.kubectl("apply", *options, "-f", manifest).split()


def test_the_plain_overlay_is_accepted(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/plain", namespace=namespace)
    assert sorted(dry_run(cluster, built)) == [
        "clusterrole.rbac.authorization.k8s.io/burst-daemon-nodes",
        "clusterrolebinding.rbac.authorization.k8s.io/burst-daemon-nodes",
        "configmap/burst-lead",
        "job.batch/lead",
        f"namespace/{namespace}",
        "networkpolicy.networking.k8s.io/burst-lead",
        "persistentvolumeclaim/burst-state",
        "role.rbac.authorization.k8s.io/burst-daemon",
        "rolebinding.rbac.authorization.k8s.io/burst-daemon",
        "service/burst-lead",
        "serviceaccount/burst-daemon",
    ]


def test_the_lead_behind_a_load_balancer_is_open_to_some_only(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    part = os.path.relpath(MANIFESTS / "parts" / "load-balancer", tmp_path.resolve())
    built = build(
        cluster, tmp_path, "overlays/plain", namespace=namespace, components=[part]
    )
    assert "service/burst-lead" in dry_run(cluster, built)
    found = yaml.safe_load_all(built.read_text())
    (service,) = (thing["spec"] for thing in found if thing["kind"] == "Service")
    assert service["type"] == "LoadBalancer"
    assert service["loadBalancerSourceRanges"]
    assert service["ports"] == [{"name": "broker", "port": 8050, "targetPort": 8050}]
    assert service["externalTrafficPolicy"] == "Local"


def test_in_gke_no_container_but_the_daemons_has_a_token(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/gke", namespace=namespace)
    assert "job.batch/lead" in dry_run(cluster, built)
    found = list(yaml.safe_load_all(built.read_text()))
    (job,) = (thing for thing in found if thing["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
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
    (account,) = (thing for thing in found if thing["kind"] == "ServiceAccount")
    assert "annotations" not in account["metadata"]
    (settings,) = (
        thing["data"]["burst.toml"]
        for thing in found
        if thing["metadata"]["name"] == "burst-lead" and thing["kind"] == "ConfigMap"
    )
    assert 'type = "gke"' in settings


@pytest.mark.usefixtures("miniclusters")
def test_the_overlay_with_a_minicluster_is_accepted(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/kind", namespace=namespace)
    assert "minicluster.flux-framework.org/lead" in dry_run(cluster, built)


def test_the_secret_example_is_accepted(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    text = (MANIFESTS / "secret.example.yaml").read_text()
    secret = tmp_path / "secret.yaml"
    secret.write_text(text.replace("namespace: burst", f"namespace: {namespace}"))
    assert dry_run(cluster, secret) == ["secret/burst-curve"]


def test_the_secret_is_mounted_for_its_owner_only(
    cluster: AnyCluster, tmp_path: Path
) -> None:
    built = build(cluster, tmp_path, "overlays/plain").read_text()
    # 0400 is 256; written the other way it would be a mode that leaves it open.
    assert "defaultMode: 256" in built


def reviews(
    cluster: AnyCluster, account: str, wanted: list[tuple[str, str, str, str]]
) -> list[bool]:
    """Tell whether the account may do each of (group, resource, verb, namespace)."""
    items = []
    for group, named, verb, namespace in wanted:
        resource, _, part = named.partition("/")
        attributes = {"group": group, "resource": resource, "subresource": part}
        attributes |= {"verb": verb, "namespace": namespace}
        items.append(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": account, "resourceAttributes": attributes},
            }
        )
    every = {"apiVersion": "v1", "kind": "List", "items": items}
    path = 'jsonpath={.status.allowed}{"\\n"}'
    answers = cluster.kubectl("create", "-f", "-", "-o", path, manifest=every)
    return [answer == "true" for answer in answers.split()]


def test_the_account_may_do_what_it_has_to_and_nothing_else(
    cluster: AnyCluster, namespace: str, tmp_path: Path
) -> None:
    """Applied as it is, but for names of their own: roles of a cluster are shared."""
    suffix = f"-{secrets.token_hex(3)}"
    built = build(
        cluster, tmp_path, "overlays/plain", namespace=namespace, nameSuffix=suffix
    )
    # Its namespace has the suffix too, so only what is about rights is applied.
    rights = [
        thing
        for thing in yaml.safe_load_all(built.read_text())
        if thing["kind"] in RIGHTS
    ]
    try:
        every = {"apiVersion": "v1", "kind": "List", "items": rights}
        cluster.kubectl("apply", "-f", "-", manifest=every)
        who = f"system:serviceaccount:{namespace}:{ACCOUNT}{suffix}"
        needed = [(*right, namespace) for right in NEEDED]
        needed.append(("", "nodes", "get", ""))
        # Roles take effect some milliseconds late.
        cluster.wait_for("rights", lambda: all(reviews(cluster, who, needed)), 10)
        others = [(*right, namespace) for right in FORBIDDEN]
        others += [(*right, "default") for right in NEEDED]
        others += [("", "nodes", verb, "") for verb in ("list", "patch", "delete")]
        others += [("", "namespaces", verb, "") for verb in ("create", "delete")]
        allowed = reviews(cluster, who, others)
        assert not [what for what, may in zip(others, allowed, strict=True) if may]
    finally:
        names = [
            f"clusterrole{part}/burst-daemon-nodes{suffix}" for part in ("", "binding")
        ]
        cluster.kubectl("delete", "--ignore-not-found", *names)
