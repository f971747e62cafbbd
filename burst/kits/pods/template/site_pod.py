# SPDX-License-Identifier: MIT
"""What `pod` of the settings says of the broker's container and its nodes.

The template is merged with `pod` as a whole (`overlay.merge_pod`). This reads of it
what other parts have to know: the variables and volumes of the container, and the nodes
that are selected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.overlay import merge_pod

if TYPE_CHECKING:
    from burst.kits.pods.offer_table import OfferTable
    from burst.kits.pods.settings import PodSettings

_S = TypeVar("_S", bound="PodSettings")


class SiteMount(NamedTuple):
    """One volume in the broker's container."""

    mount: Mapping[str, Any]
    """As in `volumeMounts`."""
    volume: Mapping[str, Any]
    """As in `volumes`; empty if it is one of ours."""

    @property
    def path(self) -> str:
        """Where it is mounted."""
        return str(self.mount.get("mountPath"))

    @property
    def is_empty(self) -> bool:
        """Whether it is an empty directory, which all users may write."""
        return "emptyDir" in self.volume


def for_offer(settings: _S, table: OfferTable) -> _S:
    """Return the settings with `pod` of the offer merged over their own."""
    if not table.pod:
        return settings
    return msgspec.structs.replace(settings, pod=_merged(settings.pod, table.pod))


def with_pod_spec(settings: _S, spec: Mapping[str, Any]) -> _S:
    """Return the settings with such a spec merged over that of their `pod`."""
    return msgspec.structs.replace(settings, pod=_merged(settings.pod, {"spec": spec}))


def node_selector(settings: PodSettings, table: OfferTable) -> Mapping[str, str]:
    """Return the labels that nodes of an offer must have."""
    found = _merged(settings.pod, table.pod)["spec"].get("nodeSelector", {})
    return dict(found)


def variables(settings: PodSettings) -> list[Manifest]:
    """Return the variables of the broker's container, as in `env`."""
    return [dict(entry) for entry in _broker(settings).get("env", ())]


def site_mounts(settings: PodSettings) -> list[SiteMount]:
    """Return what is mounted in the broker's container."""
    volumes = {volume["name"]: volume for volume in site_volumes(settings)}
    return [
        SiteMount(mount, volumes.get(str(mount.get("name")), {}))
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
