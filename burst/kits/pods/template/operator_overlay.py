# SPDX-License-Identifier: MIT
"""`pod` of the settings with form operator: the part that a MiniCluster has fields for.

Source: `api/v1alpha2` of the Flux Operator as of 2026 (commit 0d75cef8), and what it
makes of each field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER

_POD = ("dnsPolicy", "hostIPC", "hostPID", "runtimeClassName", "schedulerName")
_CONTAINER = ("name", "env", "resources", "securityContext", "workingDir")
_LACKS = 'a MiniCluster has no such field; set form = "job"'


def check_for_operator(overlay: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield a sentence for each key that a MiniCluster lacks.

    `overlay` is one of which `check_overlay` said nothing.
    """
    spec = overlay.get("spec", {})
    for key in spec:
        if key not in (*_POD, "tolerations", "containers"):
            yield f"{where}.spec.{key}: {_LACKS}"
    for container in spec.get("containers", []):
        at = f"{where}.spec.containers.{container['name']}"
        if container["name"] != BROKER:
            yield f"{at}: {_LACKS}"
        else:
            yield from _check_broker(container, at)


def _check_broker(container: Mapping[str, Any], where: str) -> Iterator[str]:
    for key in container:
        if key not in _CONTAINER:
            yield f"{where}.{key}: {_LACKS}"
    for key in container.get("resources", {}):
        if key not in ("requests", "limits"):
            yield f"{where}.resources.{key}: {_LACKS}"
    for entry in container.get("env", []):
        if "valueFrom" in entry and not _secret_of(entry):
            yield f"{where}.env.{entry['name']}.valueFrom: {_LACKS}"


def merge_minicluster(made: Manifest, *overlays: Mapping[str, Any]) -> Manifest:
    """Return the MiniCluster's spec with each overlay in the fields that it has."""
    for overlay in overlays:
        made = _merge(made, overlay)
    return made


def _merge(made: Manifest, overlay: Mapping[str, Any]) -> Manifest:
    pod, (container,) = dict(made["pod"]), made["containers"]
    for key, value in overlay.get("metadata", {}).items():
        pod[key] = {**pod[key], **value}
    spec = overlay.get("spec", {})
    pod |= {key: spec[key] for key in _POD if key in spec}
    if "tolerations" in spec:
        pod["tolerations"] = [*pod.get("tolerations", []), *spec["tolerations"]]
    for change in spec.get("containers", []):
        container = _merge_container(container, change)
    return {**made, "pod": pod, "containers": [container]}


def _merge_container(container: Manifest, change: Mapping[str, Any]) -> Manifest:
    plain, secrets = dict(container["environment"]), dict(container.get("secrets", {}))
    for entry in change.get("env", []):
        name, secret = entry["name"], _secret_of(entry)
        for known in (plain, secrets):
            known.pop(name, None)
        if secret:
            secrets[name] = secret
        else:
            plain[name] = entry.get("value", "")
    merged = {**container, "environment": plain}
    if secrets:
        merged["secrets"] = secrets
    if "workingDir" in change:
        merged["workingDir"] = change["workingDir"]
    if "securityContext" in change:
        context = container.get("securityContext", {})
        merged["securityContext"] = {**context, **change["securityContext"]}
    if "resources" in change:
        merged["resources"] = _merge_resources(
            container["resources"], change["resources"]
        )
    return merged


def _merge_resources(base: Manifest, change: Mapping[str, Any]) -> Manifest:
    return {
        kind: {**base.get(kind, {}), **change.get(kind, {})}
        for kind in {**base, **change}
    }


def _secret_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return name and key of the Secret that a variable comes from, if it does."""
    source = entry.get("valueFrom")
    reference = source.get("secretKeyRef") if isinstance(source, Mapping) else None
    if not isinstance(reference, Mapping):
        return {}
    return {key: str(reference.get(key, "")) for key in ("name", "key")}
