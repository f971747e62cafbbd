# SPDX-License-Identifier: MIT
"""Merges `pod` of the settings into a MiniCluster, as far as it has fields for it.

Source: `api/v1alpha2` of the Flux Operator as of 2026 (commit 0d75cef8), and what the
operator does with each field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.mount_paths import SHM_PATH

_POD = (
    *("dnsPolicy", "hostIPC", "hostPID", "nodeSelector", "runtimeClassName"),
    *("schedulerName", "serviceAccountName", "tolerations"),
)
_CONTAINER = (
    *("name", "env", "imagePullPolicy", "resources", "securityContext"),
    *("volumeMounts", "workingDir"),
)
_SOURCES = {
    "csi": ("driver", "volumeAttributes"),
    "emptyDir": ("medium", "sizeLimit"),
    "hostPath": ("path", "type"),
    "persistentVolumeClaim": ("claimName", "readOnly"),
    "secret": ("secretName",),
}
LACKS = 'a MiniCluster has no such field; set form = "job"'


def check_for_operator(overlay: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield a sentence for each key that a MiniCluster has no field for.

    `overlay` must have passed `check_overlay`.
    """
    spec = overlay.get("spec", {})
    for key in spec:
        if key not in (*_POD, "containers", "imagePullSecrets", "volumes"):
            yield f"{where}.spec.{key}: {LACKS}"
    if len(spec.get("imagePullSecrets", ())) > 1:
        yield f"{where}.spec.imagePullSecrets: a MiniCluster has only one; keep one"
    for container in spec.get("containers", []):
        at = f"{where}.spec.containers.{container['name']}"
        if container["name"] != BROKER:
            yield f"{at}: {LACKS}"
        else:
            yield from _check_broker(container, at)
    yield from _check_volumes(spec, where)


def _check_volumes(spec: Mapping[str, Any], where: str) -> Iterator[str]:
    """Check the volumes: a MiniCluster mounts each at exactly one path."""
    mounts = _mounts_of(spec)
    for volume in spec.get("volumes", ()):
        at = f"{where}.spec.volumes.{volume['name']}"
        if len(mounts.get(volume["name"], ())) != 1:
            yield f"{at}: a MiniCluster mounts it at one path; mount it in broker once"
            continue
        (mount,) = mounts[volume["name"]]
        for key, source in volume.items():
            if key == "name":
                continue
            lacks = key not in _SOURCES or set(source) - set(_SOURCES[key])
            # The only emptyDir of a MiniCluster is in memory, at this path.
            elsewhere = mount.get("mountPath") != SHM_PATH
            if lacks or (key == "emptyDir" and elsewhere):
                yield f"{at}.{key}: {LACKS}"
        for key in mount.keys() - {"name", "mountPath", "readOnly"}:
            yield f"{at}, {key} of its mount: {LACKS}"


def _mounts_of(spec: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the broker's volumeMounts, by the volume's name."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for container in spec.get("containers", ()):
        for mount in container.get("volumeMounts", ()):
            found.setdefault(str(mount.get("name")), []).append(mount)
    return found


def _check_broker(container: Mapping[str, Any], where: str) -> Iterator[str]:
    for key in container:
        if key not in _CONTAINER:
            yield f"{where}.{key}: {LACKS}"
    for key in container.get("resources", {}):
        if key not in ("requests", "limits"):
            yield f"{where}.resources.{key}: {LACKS}"
    for entry in container.get("env", []):
        if "valueFrom" in entry and not _secret_of(entry):
            yield f"{where}.env.{entry['name']}.valueFrom: {LACKS}"


def merge_minicluster(made: Manifest, overlay: Mapping[str, Any]) -> Manifest:
    """Return the MiniCluster's spec with the overlay merged into its fields."""
    pod, (container,) = dict(made["pod"]), made["containers"]
    for key, value in overlay.get("metadata", {}).items():
        pod[key] = {**pod[key], **value}
    spec = overlay.get("spec", {})
    pod |= {key: spec[key] for key in _POD if key in spec}
    for change in spec.get("containers", []):
        container = _merge_container(container, change)
    mounts = _mounts_of(spec)
    volumes = {
        volume["name"]: _volume(volume, mounts[volume["name"]][0])
        for volume in spec.get("volumes", ())
    }
    container = {**container, "volumes": {**container["volumes"], **volumes}}
    for secret in spec.get("imagePullSecrets", ()):
        container["imagePullSecret"] = secret.get("name")
    return {**made, "pod": pod, "containers": [container]}


def _volume(volume: Mapping[str, Any], mount: Mapping[str, Any]) -> Manifest:
    """Return a volume and its mount in the form of a MiniCluster."""
    where: Manifest = {"path": mount["mountPath"]}
    if "emptyDir" in volume:
        found = {"emptyDir": True, "emptyDirMedium": "memory"}
        size = volume["emptyDir"].get("sizeLimit")
        return {**found, **({"emptyDirSizeLimit": size} if size else {}), **where}
    where["readOnly"] = bool(mount.get("readOnly"))
    if "csi" in volume:
        csi = volume["csi"]
        where["csiDriver"] = csi["driver"]
        if "volumeAttributes" in csi:
            where["csiDriverAttributes"] = csi["volumeAttributes"]
    elif "secret" in volume:
        where["secretName"] = volume["secret"]["secretName"]
    elif "hostPath" in volume:
        where["hostPath"] = volume["hostPath"]["path"]
    else:
        where["claimName"] = volume["persistentVolumeClaim"]["claimName"]
    return where


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
    for key in ("imagePullPolicy", "workingDir"):
        if key in change:
            merged[key] = change[key]
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
    """Return name and key of the Secret of a variable; empty if it has none."""
    source = entry.get("valueFrom")
    reference = source.get("secretKeyRef") if isinstance(source, Mapping) else None
    if not isinstance(reference, Mapping):
        return {}
    return {key: str(reference.get(key, "")) for key in ("name", "key")}
