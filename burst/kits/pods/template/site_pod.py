# SPDX-License-Identifier: MIT
"""Reads from `pod` of the settings what other modules have to know.

This is the variables and volumes of the broker's container, and the node selector. The
whole of `pod` is merged into the template by `overlay.merge_pod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.overlay import merge_pod
from burst.kits.pods.template.overlay_rules import SOCKET_VOLUME

if TYPE_CHECKING:
    from burst.kits.pods.offer_table import OfferTable
    from burst.kits.pods.settings import PodSettings

_S = TypeVar("_S", bound="PodSettings")

_SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}


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


def for_offer(settings: _S, table: OfferTable) -> _S:
    """Return the settings with the offer's `pod` merged over their own `pod`."""
    if not table.pod:
        return settings
    return msgspec.structs.replace(settings, pod=_merged(settings.pod, table.pod))


def with_pod_spec(settings: _S, spec: Mapping[str, Any]) -> _S:
    """Return the settings with `spec` merged over the spec of their `pod`."""
    return msgspec.structs.replace(settings, pod=_merged(settings.pod, {"spec": spec}))


def node_selector(settings: PodSettings, table: OfferTable) -> Mapping[str, str]:
    """Return the labels that nodes of an offer must have."""
    found = _merged(settings.pod, table.pod)["spec"].get("nodeSelector", {})
    return dict(found)


def is_spot(table: OfferTable, settings: PodSettings) -> bool:
    """Tell whether the cloud may take nodes of an offer back at any time."""
    selector = node_selector(settings, table)
    return table.spot or any(selector.get(k) == v for k, v in _SPOT_LABELS.items())


def variables(settings: PodSettings) -> list[Manifest]:
    """Return the environment variables of the broker's container, as in `env`."""
    return [dict(entry) for entry in _broker(settings).get("env", ())]


def pull_policy(settings: PodSettings) -> str:
    """Return when nodes pull the image of followers."""
    return str(_broker(settings).get("imagePullPolicy", "IfNotPresent"))


def shares_socket(settings: PodSettings) -> bool:
    """Tell whether a container beside the broker mounts its socket, for any offer."""
    pods = (settings.pod, *(table.pod for table in settings.offers.values()))
    specs = [pod.get("spec", {}) for pod in pods]
    return any(
        mount.get("name") == SOCKET_VOLUME
        for spec in specs
        for other in (*spec.get("containers", ()), *spec.get("initContainers", ()))
        for mount in other.get("volumeMounts", ())
    )


def site_mounts(settings: PodSettings) -> list[Mounted]:
    """Return the volumes that `pod` mounts in the broker's container."""
    volumes = {volume["name"]: volume for volume in site_volumes(settings)}
    return [
        Mounted(volumes.get(str(mount.get("name")), {}), dict(mount))
        for mount in _broker(settings).get("volumeMounts", ())
    ]


def site_volumes(settings: PodSettings) -> list[Manifest]:
    """Return the volumes of `pod`."""
    return [dict(each) for each in settings.pod.get("spec", {}).get("volumes", ())]


def _merged(*overlays: Mapping[str, Any]) -> Manifest:
    return merge_pod({"metadata": {}, "spec": {}}, *overlays)


def _broker(settings: PodSettings) -> Mapping[str, Any]:
    containers = settings.pod.get("spec", {}).get("containers", ())
    named = (each for each in containers if each.get("name") == BROKER)
    return next(named, {})
