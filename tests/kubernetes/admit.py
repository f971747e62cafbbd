# SPDX-License-Identifier: MIT
"""Asks the API server whether it would admit a pod, which is not made."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.access import AnyCluster


def refusal(cluster: AnyCluster, namespace: str, template: dict[str, Any]) -> str:
    """Return why the pod of a Job's template is not admitted; empty if it is."""
    meta = {**template.get("metadata", {}), "name": "tried"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    manifest = {**pod, "spec": template["spec"]}
    options = ("--dry-run=server", "-n", namespace, "-f", "-")
    try:
        cluster.kubectl("create", *options, manifest=manifest)
    except RuntimeError as error:
        return str(error)
    return ""
