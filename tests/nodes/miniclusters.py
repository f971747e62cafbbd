# SPDX-License-Identifier: MIT
"""MiniClusters that the real Flux Operator runs, with this machine's programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.programs import OPERATOR, host_paths, running, says
from tests.kubernetes.access import CRD

needs_operator = pytest.mark.skipif(
    not {OPERATOR, CRD} <= os.environ.keys(),
    reason=f"want of a Flux Operator ({OPERATOR}=its manager, {CRD}=its CRD)",
)


@contextmanager
def flux_operator(log: Path) -> Iterator[None]:
    """Run the operator beside the cluster; it writes to the log."""
    quiet = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
    with running((os.environ[OPERATOR], *quiet), log):
        says(log, "Starting workers")
        yield


def directories() -> list[str]:
    """Return what pods have to see of this machine; the operator mounts no files."""
    return [path for path in host_paths(flux=True) if Path(path).is_dir()]


def mounted_directories() -> dict[str, dict[str, Any]]:
    """Return these as `volumes` of the first container of a MiniCluster.

    The operator mounts a container's volumes in all that follow.
    """
    return {
        f"host-{number}": {"hostPath": path, "path": path, "readOnly": True}
        for number, path in enumerate(directories())
    }


def patch_of(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch of a MiniCluster that sets these paths below `spec`."""
    patch = [
        {"op": "add", "path": f"/spec{path}", "value": value}
        for path, value in changes.items()
    ]
    target = {"kind": "MiniCluster", "name": name}
    return {"target": target, "patch": json.dumps(patch)}
