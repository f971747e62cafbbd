# SPDX-License-Identifier: MIT
"""Applies a file of manifests to a cluster, such as that of the Flux Operator."""

from __future__ import annotations

from pathlib import Path

import yaml

from burst.errors import Refused, SpecRefused, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import Manifest, name_of

# The condition that an object of each kind must have before it can be used.
_READY = {"CustomResourceDefinition": "Established", "Deployment": "Available"}


def install(cluster: Cluster, path: Path) -> None:
    """Create the objects of the file that do not exist. Others are not changed.

    It returns once all objects can be used: CRDs are established, Deployments
    available. Until then it raises Transient, and has to be called again. Also raises
    Refused.
    """
    manifests = read_manifests(path)
    there = [_find(cluster, manifest) for manifest in manifests]
    missing = [m for m, found in zip(manifests, there, strict=True) if found is None]
    for manifest in missing:
        try:
            cluster.apply(manifest)
        except SpecRefused as error:
            # The file is a setting, so it is refused for all bursts.
            raise Refused(f"{path}: {error.what}", error.advice) from error
    late = [
        f"{manifest['kind']} {name_of(manifest)}"
        for manifest, found in zip(manifests, there, strict=True)
        if not _is_ready(manifest["kind"], found)
    ]
    if late:
        raise Transient(f"{path}: not ready yet: {', '.join(late)}", "wait for them")


def read_manifests(path: Path) -> list[Manifest]:
    """Return the objects in a YAML file. Raises Refused."""
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Refused(
            f"{path}: cannot be read as YAML: {error}", "name another file"
        ) from None
    manifests = [document for document in documents if document is not None]
    for manifest in manifests:
        whole = isinstance(manifest, dict) and {"apiVersion", "kind"} <= manifest.keys()
        if not whole or "name" not in (manifest.get("metadata") or {}):
            raise Refused(
                f"{path}: has a document that is not a Kubernetes object",
                "name a file that `kubectl apply -f` accepts",
            )
    if not manifests:
        raise Refused(f"{path}: has no object", "name another file")
    return manifests


def _find(cluster: Cluster, manifest: Manifest) -> Manifest | None:
    kind = cluster.kind_of(manifest)
    meta = manifest["metadata"]
    if kind.namespaced:
        meta.setdefault("namespace", "default")  # as kubectl does
    return cluster.get(kind, meta.get("namespace", ""), meta["name"])


def _is_ready(kind: str, found: Manifest | None) -> bool:
    if kind not in _READY:
        return True
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    return any(
        condition.get("type") == _READY[kind] and condition.get("status") == "True"
        for condition in conditions
    )
