# SPDX-License-Identifier: MIT
"""Finds the container of a pod that runs the broker, by its name.

A pod may have other containers before or after it: a mesh such as Istio or a mount such
as gcsfuse adds containers or native sidecars (init containers that keep running).
"""

from __future__ import annotations

from burst.kits.kube.kinds import Manifest, labels_of
from burst.kits.pods.names import ID

BROKER = "broker"
"""The name of the broker's container with form job."""
VIEW = "flux-view"
"""The name of the init container that copies Flux out of the view's image. The Flux
Operator uses the same name."""
PREPARE = "prepare"
"""The init container that puts files into place, with `multi_user`."""
MUNGED = "munged"
"""The native sidecar that has the munge key, with `multi_user`."""
PROBE = "probe"
"""The name of the probe's container. A probe also uses it as its follower's host
name."""
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""The annotation that tells kubectl which container to use if none is named."""


def container_of(pod: Manifest) -> Manifest:
    """Return the broker's container from the pod's spec; empty if there is none.

    In a pod of the Flux Operator the container has the name of the MiniCluster, which
    is the burst's id.
    """
    containers = (pod.get("spec") or {}).get("containers") or []
    by_name = {str(container.get("name")): container for container in containers}
    ours = (BROKER, labels_of(pod).get(ID, ""), PROBE)
    return next((by_name[name] for name in ours if name in by_name), {})


def container_status_of(pod: Manifest) -> Manifest:
    """Return the status of the broker's container; empty until it is written."""
    name = container_of(pod).get("name")
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return next((found for found in statuses if found.get("name") == name), {})


def state_of(pod: Manifest) -> Manifest:
    """Return the state of the broker's container: `waiting`, `running` or `terminated`.

    It is empty until the kubelet writes it.
    """
    return dict(container_status_of(pod).get("state") or {})


def first_unready_init(pod: Manifest) -> Manifest | None:
    """Return the status of the init container that the broker waits for, or None.

    The broker waits for the start of a native sidecar, and for the end of others.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {
        init.get("name")
        for init in spec.get("initContainers") or []
        if init.get("restartPolicy") == "Always"
    }
    for init in status.get("initContainerStatuses") or []:
        ended = (init.get("state") or {}).get("terminated") or {}
        done = ended.get("exitCode") == 0
        if not (init.get("started") if init.get("name") in sidecars else done):
            return dict(init)
    return None
