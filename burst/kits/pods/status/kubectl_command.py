# SPDX-License-Identifier: MIT
"""The command that shows a person the pods of a burst."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from burst.kits.pods.names import Tags
from burst.model.burst import BurstId


def pods_command(
    namespace: str, tags: Tags, burst_id: BurstId, flags: Sequence[str] = ()
) -> str:
    """Return a kubectl command for a shell; `flags` of kubectl select the cluster."""
    labels = tags.labels(burst_id)
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    where = [*flags, f"--namespace={namespace}"]
    return shlex.join(["kubectl", *where, "get", "pods", f"--selector={selector}"])
