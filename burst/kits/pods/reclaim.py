# SPDX-License-Identifier: MIT
"""Pods whose nodes, or whose places on them, were taken back for others.

Sources: the Kubernetes documentation, "Disruptions" (pod disruption conditions), "Pod
Priority and Preemption", and KEP-2000 (graceful node shutdown).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burst.kits.kube.kinds import POD, Manifest, annotations_of
from burst.kits.pods.names import SPOT
from burst.kits.pods.pod_status import PodStatus, end_of_pod, pod_status_of, seconds_of
from burst.kits.pods.warnings import PREEMPTED, Warnings
from burst.provider import Phase

# Of a pod: it made way for others.
_MADE_WAY = ("PreemptionByScheduler", "Preempting")
# Of its node: it is tainted or drained, as before it is taken away, or it is gone.
_NODE_LOST = (
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "NodeLost",
)
# From the kubelet, for a want of memory or disk, too; a node that is shut down in an
# orderly manner says "in response to imminent node shutdown".
_BY_NODE = ("TerminationByKubelet", "Terminated", "NodeShutdown", "Shutdown")
# The next pod is made once the one before it has ended: within its grace period.
_FOLLOWS_S = 60.0


def is_reclaimed(pod: Manifest) -> bool:
    """Tell whether a pod ended as its node or its place was taken back.

    On nodes that are not spot the loss of a node is a failure.
    """
    reason, message = end_of_pod(pod)
    if reason in _MADE_WAY:
        return True
    lost = reason in _NODE_LOST or (reason in _BY_NODE and "shutdown" in message)
    return lost and SPOT in annotations_of(pod)


def follower_status(best: Manifest, pods: Iterable[Manifest]) -> PodStatus:
    """Return the status of a follower by its pods, of which one is the best.

    Until another pod runs, that its node was taken back shows in an earlier pod only.
    """
    status = pod_status_of(best)
    if status.phase is Phase.RUNNING:
        return status
    if is_reclaimed(best):
        return msgspec.structs.replace(status, reclaimed=True)
    taken = next(filter(is_reclaimed, pods), None)
    if taken is None:
        return status
    return _followed(status, pod_status_of(taken).why)


def note_preemption(
    status: PodStatus, prefix: str, best: Manifest | None, warnings: Warnings
) -> PodStatus:
    """Return the status of a follower whose last pod may have made way for others.

    A pod whose broker ends at once is gone before it is seen, but not its event.
    `best` is the pod that follows it, and `prefix` what the names of both begin with.
    """
    if status.phase is not Phase.PENDING or status.reclaimed:
        return status
    made = seconds_of(best["metadata"].get("creationTimestamp", "")) if best else 0.0
    times = [
        warning.last
        for (kind, name), about in warnings.items()
        for warning in about
        if warning.reason == PREEMPTED and kind == POD.name and name.startswith(prefix)
    ]
    if not times or max(times) < made - _FOLLOWS_S:
        return status
    return _followed(status, "was preempted by pods of a higher priority")


def _followed(status: PodStatus, why: str) -> PodStatus:
    return msgspec.structs.replace(
        status, why=f"{why}; its next pod {status.why}", reclaimed=True
    )
