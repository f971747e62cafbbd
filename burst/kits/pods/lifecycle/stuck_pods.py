# SPDX-License-Identifier: MIT
"""Handles pods that are being deleted and do not end because their node is dead.

A pod is removed once its kubelet reports its end. A pod on a dead node therefore stays,
and with it its Job, the burst and the burst's ranks. Its object is deleted without the
kubelet only if the node is gone or not ready, or if a person asks for it: a broker that
still runs there would take the rank from a later broker.

Source: the Kubernetes documentation, "Force Delete StatefulSet Pods" and "Nodes".
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.errors import ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import NODE
from burst.kits.pods.status.kept_object import KeptObject, seconds_of

# Seconds after the end of its grace period at which a pod is overdue. A kubelet ends a
# pod within seconds of its grace period; clocks may differ.
_OVERDUE_S = 60.0


def is_overdue(pod: KeptObject, now: float) -> bool:
    """Return whether the pod should have ended at least _OVERDUE_S ago."""
    ends = seconds_of(pod.metadata.deletion_timestamp)
    return pod.ending and now - ends > _OVERDUE_S


def delete_stuck(
    cluster: Cluster,
    namespace: str,
    pods: Iterable[KeptObject],
    now: float,
    *,
    force: bool = False,
) -> None:
    """Delete the objects of pods that are being deleted, and overdue on dead nodes.

    `now` is this host's time. With `force`, delete the objects of all pods that are
    being deleted. If the credentials may not get nodes, it does nothing without
    `force`. Raises Transient, Refused.
    """
    dead: dict[str, bool] = {}
    for pod in pods:
        if not pod.ending:
            continue
        node = pod.node
        if not force:
            if not (node and is_overdue(pod, now + cluster.ahead)):
                continue
            if node not in dead:
                dead[node] = _is_dead(cluster, node)
        if force or dead[node]:
            cluster.delete(pod.reference(namespace), "Background", grace=0)


def _is_dead(cluster: Cluster, name: str) -> bool:
    try:
        node = cluster.get(NODE, "", name)
    except ProviderError:
        # Usually the right to get nodes is missing, which is optional. The pod stays,
        # and the status says what a person can do.
        return False
    if node is None:
        return True
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = (c.get("status") for c in conditions if c.get("type") == "Ready")
    return next(ready, "Unknown") != "True"
