# SPDX-License-Identifier: MIT
"""A site names its images, by digest, in one place of what it applies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubelab.cluster import Cluster
from tests.kubernetes.kustomize import MANIFESTS

pytestmark = pytest.mark.kubernetes
DIGEST = f"sha256:{'0a' * 32}"
PARTS = [
    *("overlays/plain", "overlays/gke", "overlays/kind"),
    *("gc", "ensemble", "ensemble-agent"),
]
SEVERAL = ("ensemble", "ensemble-agent")
"""Those that have two namespaces, see test_manifests."""


def images(found: Any) -> Iterator[str]:
    """Yield the images that an object names, wherever it does."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key == "image" and isinstance(value, str):
                yield value
            else:
                yield from images(value)
    elif isinstance(found, list):
        for item in found:
            yield from images(item)


def built(cluster: Cluster, part: Path) -> list[Any]:
    return list(yaml.safe_load_all(cluster.kubectl("kustomize", part)))


def of_parts() -> set[str]:
    """Return the images that the parts name."""
    source = {
        image
        for path in (MANIFESTS / "parts").rglob("*.yaml")
        for image in images(list(yaml.safe_load_all(path.read_text())))
    }
    # Where an image has a tag and a digest, kustomize may drop the tag.
    return source | {f"{name_of(i)}@{i.partition('@')[2]}" for i in source if "@" in i}


def name_of(image: str) -> str:
    """Return the image's name without tag and digest."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


@pytest.mark.parametrize("part", PARTS)
def test_each_image_is_that_of_the_parts_and_can_be_another_by_its_digest(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    part: str,
    *,
    has_miniclusters: bool,
) -> None:
    copy = tmp_path / "manifests"
    shutil.copytree(MANIFESTS, copy)
    path = copy / part / "kustomization.yaml"
    tables = yaml.safe_load(path.read_text())
    named = [entry["name"] for entry in tables["images"]]
    before = set(images(built(cluster, copy / part)))
    assert {name_of(image) for image in before} == set(named)
    assert before <= of_parts()
    tables["images"] = [
        {"name": name, "newName": f"r.example:5000/{index}", "digest": DIGEST}
        for index, name in enumerate(named)
    ]
    if part not in SEVERAL:
        tables["namespace"] = namespace
    path.write_text(yaml.safe_dump(tables))
    found = built(cluster, copy / part)
    assert {name_of(image) for image in images(found)} == {
        f"r.example:5000/{index}" for index in range(len(named))
    }
    # Where there is a tag, too, the digest is what counts.
    assert all(image.endswith(f"@{DIGEST}") for image in images(found))
    if part in SEVERAL:
        return
    if part == "overlays/kind" and not has_miniclusters:
        return
    options = ("--dry-run=server", "--validate=strict")
    cluster.kubectl("apply", *options, "-k", copy / part)
