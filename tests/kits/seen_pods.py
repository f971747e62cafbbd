# SPDX-License-Identifier: MIT
"""Objects of a cluster as they are read, and the status of a burst by them."""

from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import HOSTS, ID, INDEX
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.status.warnings import Warnings, warnings_by_object
from burst.provider import BurstStatus

NOW = 1000.0
SIDECAR: Manifest = {
    "name": "istio-proxy",
    "restartCount": 7,
    "ready": False,
    "state": {"terminated": {"exitCode": 3}},
}
RUNNING: dict[str, Any]
RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
EARLIER = "1970-01-01T00:15:00Z"  # 100 s before


def thing(kind: str, name: str = "b", **more: Any) -> Manifest:
    meta: Manifest = {
        "name": name,
        "creationTimestamp": EARLIER,
        "labels": {ID: "b"},
        "annotations": {HOSTS: "n-[0-1]"},
    }
    meta |= more.pop("metadata", {})
    return {"kind": kind, "metadata": meta, **more}


def pod(index: int, **status: Any) -> Manifest:
    """Return a pod that is bound, with this status. Its sidecar came first."""
    for container in status.get("containerStatuses", []):
        container.setdefault("name", "broker")
    if "containerStatuses" in status:
        status["containerStatuses"] = [SIDECAR, *status["containerStatuses"]]
    made = thing("Pod", f"p{index}", status=status)
    made["metadata"]["labels"] = {ID: "b", INDEX: str(index)}
    container = {"name": "broker", "image": "flux:1"}
    sidecar = {"name": "istio-proxy", "image": "proxy:1"}
    native = {"name": "gcsfuse", "restartPolicy": "Always"}
    spec = {
        "nodeName": "node",
        "initContainers": [{"name": "view"}, native],
        "containers": [sidecar, container],
    }
    return {**made, "spec": spec}


def waiting(reason: str, message: str = "") -> Manifest:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def unschedulable(
    index: int,
    message: str = "0/2 nodes are available",
    reason: str = "Unschedulable",
    **status: Any,
) -> Manifest:
    """Return a pod that the scheduler has found no node for since EARLIER."""
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    condition |= {"reason": reason, "lastTransitionTime": EARLIER}
    made = pod(index, conditions=[condition], **status)
    del made["spec"]["nodeName"]
    return made


def event(kind: str, name: str, words: str, at: str = EARLIER) -> Manifest:
    """Return an event about an object; `words` are `REASON: MESSAGE`."""
    reason, _, message = words.partition(": ")
    return {
        "metadata": {"creationTimestamp": at},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
    }


def look(
    *objects: Manifest,
    warnings: Warnings | None = None,
    logs: dict[str, str] | None = None,
    schedule: float = 300,
) -> BurstStatus:
    (found,) = group_by_burst(map(kept, objects))
    return describe(found, warnings or {}, logs or {}, schedule, NOW)


def about(kind: str, name: str, words: str, at: str = EARLIER) -> Warnings:
    return warnings_by_object([event(kind, name, words, at)])
