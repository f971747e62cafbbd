# SPDX-License-Identifier: MIT
"""An operator is brought into a cluster from a file, and waited for."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from burst.errors import Transient
from burst.kits.kube import Cluster, Kubeconfig, install
from tests.kubelab.cluster import Cluster as Lab
from tests.kubernetes.bursts import attempt
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.kubernetes


def deployment(namespace: str) -> dict[str, Any]:
    labels = {"app": "gadgeteer"}
    container = {"name": "main", "image": "local.test/none:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "gadgeteer", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta} | {
        "spec": spec
    }


def definition(group: str) -> dict[str, Any]:
    """Return a CRD, which lives in no namespace."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


@pytest.fixture
def group(lab: Lab) -> Iterator[str]:
    """An API group of this run's own, as CRDs are the whole cluster's."""
    group = f"t{secrets.token_hex(3)}.example.com"
    yield group
    lab.kubectl("delete", "crd", f"gadgets.{group}", "--ignore-not-found")


def test_what_is_missing_is_made_and_waited_for(
    lab: Lab, namespace: str, group: str, tmp_path: Path
) -> None:
    path = tmp_path / "operator.yaml"
    documents = [definition(group), deployment(namespace)]
    path.write_text("---\n" + yaml.safe_dump_all(documents))
    cluster = Cluster(Kubeconfig(str(lab.kubeconfig)), timeout=HANG_S)
    first = attempt(lambda: install(cluster, path))
    assert isinstance(first, Transient)
    late = f"CustomResourceDefinition gadgets.{group}, Deployment gadgeteer"
    assert f"not ready yet: {late}" in first.what

    def ready() -> bool:
        return attempt(lambda: install(cluster, path)) is None

    wait_until(ready, lambda: attempt(lambda: install(cluster, path)))
    # What is there stays as it is, also where the file has changed since. A busy node
    # may have its pod unready for a moment.
    documents[1]["spec"]["replicas"] = 3
    path.write_text(yaml.safe_dump_all(documents))
    wait_until(ready, lambda: attempt(lambda: install(cluster, path)))
    there = lab.kubectl(
        *("get", "deployment", "gadgeteer", "-n", namespace),
        *("-o", "jsonpath={.spec.replicas}"),
    )
    assert there == "1"
