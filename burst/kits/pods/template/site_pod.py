# SPDX-License-Identifier: MIT
"""Reads from `pod` of the settings what other modules have to know.

This is the variables and volumes of the broker's container, and the node selector. The
whole of `pod` is merged into the template by `overlay.merge_pod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.overlay import merge_pod
from burst.kits.pods.template.overlay_rules import SOCKET_VOLUME

_SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}

SitePod = Mapping[str, Any]
"""A value of `pod`: a part of a pod's template, with `metadata` and `spec`."""


class Mounted(NamedTuple):
    """A volume of a pod, and where a container mounts it."""

    volume: Manifest
    """The entry of `volumes`; empty for a mount of `pod` of a volume of ours."""
    mount: Manifest
    """The entry of `volumeMounts`."""

    @property
    def path(self) -> str:
        """The path at which it is mounted."""
        return str(self.mount.get("mountPath"))

    @property
    def is_empty(self) -> bool:
        """Whether it is an emptyDir, which all users may write."""
        return "emptyDir" in self.volume


def merged_pods(pod: SitePod, over: SitePod) -> SitePod:
    """Return one `pod` with another merged over it."""
    return merge_pod({"metadata": {}, "spec": {}}, pod, over)


def selects_spot(pod: SitePod) -> bool:
    """Tell whether the node selector names nodes that a cloud may take back."""
    selector = pod.get("spec", {}).get("nodeSelector", {})
    return any(selector.get(key) == value for key, value in _SPOT_LABELS.items())


def mounts_socket(pod: SitePod) -> bool:
    """Tell whether any container mounts the volume of the broker's socket."""
    spec = pod.get("spec", {})
    return any(
        mount.get("name") == SOCKET_VOLUME
        for other in (*spec.get("containers", ()), *spec.get("initContainers", ()))
        for mount in other.get("volumeMounts", ())
    )


def variables(pod: SitePod) -> list[Manifest]:
    """Return the environment variables of the broker's container, as in `env`."""
    return [dict(entry) for entry in _broker(pod).get("env", ())]


def pull_policy(pod: SitePod) -> str:
    """Return when nodes pull the image of followers."""
    return str(_broker(pod).get("imagePullPolicy", "IfNotPresent"))


def site_mounts(pod: SitePod) -> list[Mounted]:
    """Return the volumes that are mounted in the broker's container."""
    volumes = {volume["name"]: volume for volume in site_volumes(pod)}
    return [
        Mounted(volumes.get(str(mount.get("name")), {}), dict(mount))
        for mount in _broker(pod).get("volumeMounts", ())
    ]


def site_volumes(pod: SitePod) -> list[Manifest]:
    """Return the volumes."""
    return [dict(each) for each in pod.get("spec", {}).get("volumes", ())]


def _broker(pod: SitePod) -> Mapping[str, Any]:
    containers = pod.get("spec", {}).get("containers", ())
    named = (each for each in containers if each.get("name") == BROKER)
    return next(named, {})
