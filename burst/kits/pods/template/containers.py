# SPDX-License-Identifier: MIT
"""Which container of a pod runs the broker, by its name.

A pod may have others: a mesh such as Istio or a mount such as gcsfuse adds its own, as
containers or as native sidecars (init containers that go on running), before or after.
"""

from __future__ import annotations

from burst.kits.kube.kinds import Manifest, labels_of
from burst.kits.pods.names import ID

BROKER = "broker"
"""Its name with form job."""
VIEW = "flux-view"
"""That of the init container that copies Flux out of the view's image, as the Flux
Operator names its own."""
PREPARE = "prepare"
"""With `multi_user`: the init container that puts files where their users find them."""
MUNGED = "munged"
"""With `multi_user`: the native sidecar with the munge key."""
PROBE = "probe"
"""That of the probe's container, and in place of a follower's host name."""
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""The annotation that tells kubectl which container is meant unless it is named."""


def container_of(pod: Manifest) -> Manifest:
    """Return the container as the pod's spec has it; empty if it has none of ours.

    The Flux Operator names it for the MiniCluster, which is named for the burst.
    """
    containers = (pod.get("spec") or {}).get("containers") or []
    by_name = {str(container.get("name")): container for container in containers}
    ours = (BROKER, labels_of(pod).get(ID, ""), PROBE)
    return next((by_name[name] for name in ours if name in by_name), {})


def container_status_of(pod: Manifest) -> Manifest:
    """Return the status of that container; empty before the kubelet has written it."""
    name = container_of(pod).get("name")
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return next((found for found in statuses if found.get("name") == name), {})


def state_of(pod: Manifest) -> Manifest:
    """Return the state of that container: `waiting`, `running` or `terminated`."""
    return dict(container_status_of(pod).get("state") or {})


def first_unready_init(pod: Manifest) -> Manifest | None:
    """Return the status of the init container that the broker waits for, if any.

    For a native sidecar it waits until that has started, not until it ends.
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
