# SPDX-License-Identifier: MIT
"""`pod` of a provider's table, as tests write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CLAIM = {"persistentVolumeClaim": {"claimName": "results"}}
SHM = {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}


def pod_words(
    env: Mapping[str, str] | None = None,
    volumes: Mapping[str, Mapping[str, Any]] | None = None,
    read_only: Mapping[str, Mapping[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return `pod` with these variables and volumes of the broker's container.

    Volumes are by the path at which they are mounted; `spec` has what else is there.
    """
    locked = read_only or {}
    sources = {**(volumes or {}), **locked}
    broker: dict[str, Any] = {"name": "broker"}
    if env:
        broker["env"] = [{"name": key, "value": text} for key, text in env.items()]
    if sources:
        broker["volumeMounts"] = [
            {
                "name": f"v-{number}",
                "mountPath": path,
                **({"readOnly": True} if path in locked else {}),
            }
            for number, path in enumerate(sources)
        ]
        spec["volumes"] = [
            {"name": f"v-{number}", **source}
            for number, source in enumerate(sources.values())
        ]
    if len(broker) > 1:
        spec["containers"] = [broker]
    return {"spec": spec}
