# SPDX-License-Identifier: MIT
"""Brings what a person has in a file, such as an operator, into a cluster.

Only what is missing is made: what is there may be others', and of another version.
Nothing of it is ever deleted, as others may use it by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from burst.errors import ConfigError, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import Kind, Manifest, name_of

# What other objects of a file rest on, in the order in which it is made.
_FIRST = ("Namespace", "CustomResourceDefinition")
# The condition that says of an object that it does its work.
_WORKS = {"CustomResourceDefinition": "Established", "Deployment": "Available"}


def read_manifests(path: Path) -> list[Manifest]:
    """Return the objects of a YAML file. Raises ConfigError."""
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    found = [item for document in documents for item in _items(document)]
    for item in found:
        named = isinstance(item, dict) and item.get("kind") and item.get("apiVersion")
        if not named or "name" not in (item.get("metadata") or {}):
            raise ConfigError(
                f"{path}: an object in it lacks apiVersion, kind or metadata.name",
                "take a file that `kubectl apply -f` takes",
            )
    if not found:
        raise ConfigError(f"{path}: there is no object in it")
    return found


def install(cluster: Cluster, manifests: Sequence[Manifest]) -> None:
    """Make the objects that are missing; return once all of them do their work.

    Raises Transient until then, and Refused.
    """
    waited = [m for m in manifests if m["kind"] in _WORKS]
    if waited and not any(_hindrances(cluster, waited)):
        return
    ranked = sorted(manifests, key=_rank)
    for manifest in ranked:
        kind, namespace = _locate(cluster, manifest)
        if cluster.get(kind, namespace, name_of(manifest)) is None:
            meta = {**manifest["metadata"]}
            if namespace:
                meta["namespace"] = namespace
            cluster.apply({**manifest, "metadata": meta}, kind)
    hindrance = next(_hindrances(cluster, waited), "")
    if hindrance:
        raise Transient(f"waiting for what was installed: {hindrance}", retry_after=2.0)


def _items(document: Any) -> list[Any]:
    if document is None:
        return []
    if isinstance(document, dict) and document.get("kind") == "List":
        return list(document.get("items") or [])
    return [document]


def _rank(manifest: Manifest) -> int:
    kind = manifest["kind"]
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _locate(cluster: Cluster, manifest: Manifest) -> tuple[Kind, str]:
    """Return the object's kind, and its namespace if it is to be in one."""
    api, name = str(manifest["apiVersion"]), str(manifest["kind"])
    found = cluster.discover(api, name)
    if found is None:
        raise Transient(f"the cluster does not know {name} of {api} (yet)")
    kind, namespaced = found
    namespace = manifest["metadata"].get("namespace") or "default"
    return kind, str(namespace) if namespaced else ""


def _hindrances(cluster: Cluster, waited: Sequence[Manifest]) -> Iterator[str]:
    """Yield what does not do its work, and why."""
    for manifest in waited:
        kind, namespace = _locate(cluster, manifest)
        what = f"{kind.name} {name_of(manifest)}"
        there = cluster.get(kind, namespace, name_of(manifest))
        if there is None:
            yield f"{what} is not there"
            continue
        wanted = _WORKS[kind.name]
        conditions = (there.get("status") or {}).get("conditions") or []
        none: Manifest = {}
        said = next((c for c in conditions if c.get("type") == wanted), none)
        if said.get("status") != "True":
            words = said.get("message", "")
            yield f"{what} is not {wanted}" + (f": {words}" if words else "")
