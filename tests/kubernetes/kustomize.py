# SPDX-License-Identifier: MIT
"""Builds what is in manifests/, changed as a site would change it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.kubelab.cluster import Cluster

MANIFESTS = Path(__file__).parents[2] / "manifests"


def build(cluster: Cluster, folder: Path, part: str, **fields: Any) -> Path:
    """Write a kustomization on top of a part of manifests/; return what it yields."""
    resources = [os.path.relpath(MANIFESTS / part, folder.resolve())]
    (folder / "kustomization.yaml").write_text(
        json.dumps({"resources": resources, **fields})
    )
    built = folder / "built.yaml"
    built.write_text(cluster.kubectl("kustomize", folder))
    return built


def apply_all(cluster: Cluster, things: Iterable[Any], *kinds: str) -> str:
    """Apply what there is of these kinds, or of all, in one go; return what is said."""
    items = [each for each in things if not kinds or each["kind"] in kinds]
    every = {"apiVersion": "v1", "kind": "List", "items": items}
    return cluster.kubectl("apply", "-f", "-", manifest=every)


def of_kind(things: Iterable[Any], kind: str) -> Any:
    """Return the one object of a kind."""
    (found,) = (each for each in things if each["kind"] == kind)
    return found


def build_as_it_is(
    cluster: Cluster, part: str, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the objects of a part that names its namespaces, which get others here."""
    found = list(yaml.safe_load_all(cluster.kubectl("kustomize", MANIFESTS / part)))
    for thing in found:
        meta = thing["metadata"]
        if "namespace" in meta:
            meta["namespace"] = names[meta["namespace"]]
        if thing["kind"] == "Namespace":
            meta["name"] = names[meta["name"]]
        for subject in thing.get("subjects", ()):
            subject["namespace"] = names[subject["namespace"]]
    return found
