# SPDX-License-Identifier: MIT
"""Builds what is in manifests/, changed as a site would change it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.kubernetes.access import AnyCluster

MANIFESTS = Path(__file__).parents[2] / "manifests"


def build(cluster: AnyCluster, folder: Path, part: str, **fields: Any) -> Path:
    """Write a kustomization on top of a part of manifests/; return what it yields."""
    resources = [os.path.relpath(MANIFESTS / part, folder.resolve())]
    (folder / "kustomization.yaml").write_text(
        json.dumps({"resources": resources, **fields})
    )
    built = folder / "built.yaml"
    built.write_text(cluster.kubectl("kustomize", folder))
    return built
