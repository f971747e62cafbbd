# SPDX-License-Identifier: MIT
"""What the daemon's account may do in the lead's namespace, and where bursts are."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.kubernetes.api import Api
from tests.kubernetes.kustomize import MANIFESTS, apply_all, build
from tests.manifests.rights import AT_LEAD, NEEDED, Right, needed

pytestmark = pytest.mark.kubernetes
KINDS = (
    *("ServiceAccount", "Role", "RoleBinding"),
    *("ClusterRole", "ClusterRoleBinding"),
)
SERVICE = "burst-lead"
FORBIDDEN: set[Right] = {
    ("", "pods", "create"),
    ("", "pods/exec", "create"),
    *(
        ("", "secrets", verb)
        for verb in ("get", "list", "watch", "patch", "update", "delete")
    ),
    ("", "secrets", "deletecollection"),
    ("", "serviceaccounts/token", "create"),
    ("", "namespaces", "patch"),
    ("", "resourcequotas", "delete"),
    ("networking.k8s.io", "networkpolicies", "create"),
    ("networking.k8s.io", "networkpolicies", "delete"),
    ("rbac.authorization.k8s.io", "roles", "patch"),
    ("rbac.authorization.k8s.io", "rolebindings", "create"),
    ("apps", "deployments", "create"),
}


class Asked(msgspec.Struct, frozen=True):
    """One question: may the account do this?"""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""


class Account:
    """The daemon's account in the lead's namespace `near`, bound in `far` too."""

    def __init__(self, cluster: Cluster, near: str, far: str, suffix: str) -> None:
        self.cluster = cluster
        self.near = near
        self.far = far
        self.service = f"{SERVICE}{suffix}"
        self.who = f"system:serviceaccount:{near}:burst-daemon{suffix}"

    def may(self, asked: list[Asked]) -> list[bool]:
        """Ask the API server for each."""
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answers = []
        with contextlib.closing(Api(self.cluster)) as api:
            for each in asked:
                resource, _, part = each.resource.partition("/")
                attributes = msgspec.structs.asdict(each)
                attributes |= {"resource": resource, "subresource": part}
                spec = {"user": self.who, "resourceAttributes": attributes}
                answers.append(api.create(path, {"spec": spec})["status"]["allowed"])
        return answers

    def check(self, granted: list[Asked], denied: list[Asked]) -> None:
        """Roles take effect some milliseconds late."""
        self.cluster.wait_for("rights", lambda: all(self.may(granted)))
        allowed = self.may(denied)
        assert not [what for what, may in zip(denied, allowed, strict=True) if may]


def apply_rights(cluster: Cluster, built: Path) -> None:
    """Apply what is about rights only: the rest of a lead is not wanted."""
    apply_all(cluster, yaml.safe_load_all(built.read_text()), *KINDS)


def apply_far(account: Account, folder: Path, *parts: str) -> None:
    """Apply the Roles of `far`, for the account."""
    folder.mkdir()
    subject = [
        {"op": "replace", "path": f"/subjects/0/{key}", "value": value}
        for key, value in (
            ("name", account.who.rpartition(":")[2]),
            ("namespace", account.near),
        )
    ]
    patch = {"target": {"kind": "RoleBinding"}, "patch": json.dumps(subject)}
    paths = [
        os.path.relpath(MANIFESTS / "parts" / part, folder.resolve()) for part in parts
    ]
    fields = {"namespace": account.far, "patches": [patch], "components": paths}
    apply_rights(account.cluster, build(account.cluster, folder, "far", **fields))


@pytest.fixture
def account(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Account]:
    """`overlays/plain` as it is, but for names of its own: roles of a cluster are
    shared.
    """
    suffix = f"-{secrets.token_hex(3)}"
    fields = {"namespace": namespace, "nameSuffix": suffix}
    built = build(cluster, tmp_path, "overlays/plain", **fields)
    names = [
        f"clusterrole{part}/burst-daemon-nodes{suffix}" for part in ("", "binding")
    ]
    with new_namespace(cluster, "far") as far:
        try:
            apply_rights(cluster, built)
            yield Account(cluster, namespace, far, suffix)
        finally:
            cluster.kubectl("delete", "--ignore-not-found", *names)


def at(namespace: str, rights: set[Right]) -> list[Asked]:
    return [Asked(*right, namespace) for right in sorted(rights)]


def test_the_account_may_do_what_it_has_to_and_nothing_else(
    account: Account, tmp_path: Path
) -> None:
    """There nothing without `far`, and what MiniClusters need by a part of its own."""
    lead = Asked("", "services", "get", account.near, account.service)
    granted = [
        lead,
        Asked("", "pods", "list", account.near),
        Asked("", "nodes", "get"),
        Asked("", "namespaces", "get"),
    ]
    account.check(granted, at(account.far, NEEDED | AT_LEAD))
    apply_far(account, tmp_path / "far")
    denied = [
        # Where the lead is it reads two things, and makes, changes and deletes nothing.
        msgspec.structs.replace(lead, name="another"),
        *at(account.near, (NEEDED | FORBIDDEN) - {("", "pods", "list")}),
        *at(account.near, needed("operator") - {("", "pods", "list")}),
        *at(account.far, FORBIDDEN | (needed("operator") - NEEDED)),
        *at("default", NEEDED | AT_LEAD),
        *(Asked("", "nodes", verb) for verb in ("list", "patch", "delete")),
        *(Asked("", "namespaces", verb) for verb in ("create", "delete", "list")),
    ]
    account.check([*granted, *at(account.far, NEEDED)], denied)
    apply_far(account, tmp_path / "operator", "miniclusters")
    account.check(at(account.far, needed("operator")), at(account.far, FORBIDDEN))
