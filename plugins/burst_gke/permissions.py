# SPDX-License-Identifier: MIT
"""The permissions that the daemon's account needs in the project, by the settings.

All of them are in manifests/overlays/gke/iam-role.yaml, with the calls that need them.
"""

from __future__ import annotations

from burst_gke.settings import GkeSettings

_ALWAYS = ("clusters.get", "clusters.list", "clusters.getCredentials")
# `update` also changes how many nodes a burst that grows may have.
_OF_CLUSTERS = (
    *("clusters.create", "clusters.delete", "clusters.update", "operations.list"),
)
_OF_POOLS = ("clusters.update", "operations.list")
# In a cluster that others made, RBAC may allow these instead; its API server tells.
_INSIDE = (
    *("namespaces.get", "namespaces.create", "namespaces.update", "secrets.create"),
    *(f"configMaps.{verb}" for verb in ("get", "list", "create", "update", "delete")),
    *(f"services.{verb}" for verb in ("get", "list", "create", "delete")),
    *(f"jobs.{verb}" for verb in ("get", "list", "create", "update", "delete")),
    *("pods.list", "pods.delete", "pods.getLogs", "events.list"),
)

ON_VMS = (
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.update",
)
"""The permissions to list and to delete single nodes of a burst that shrinks."""


def permissions(settings: GkeSettings) -> list[str]:
    """Return the permissions that bursts by these settings need, at most 100."""
    if not settings.cluster:
        wanted = (*_ALWAYS, *_OF_CLUSTERS, *_INSIDE)
    else:
        wanted = _ALWAYS if settings.pool else (*_ALWAYS, *_OF_POOLS)
    return [f"container.{name}" for name in wanted]
