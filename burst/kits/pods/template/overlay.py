# SPDX-License-Identifier: MIT
"""`pod` of the settings: checks a site's part of the pods' template, and merges it.

It has the form of a PodTemplateSpec and is merged as by a strategic merge patch: tables
are merged, and lists are merged by the key that the Kubernetes API declares for them
(the field tag `patchMergeKey` of core/v1). Two things differ. An entry of `env`,
`volumes` and the like replaces the whole entry with its key, since it may have only one
source; containers are merged. Tolerations, the terms of an affinity to pods, and DNS
search domains are added to the existing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.template.containers import BROKER, MUNGED, PREPARE, VIEW
from burst.kits.pods.template.mount_paths import MUNGE_PATH, OUR_PATH, covers_ours
from burst.kits.pods.template.overlay_rules import (
    ANNOTATIONS,
    CONTAINER_FIELDS,
    ENVIRONMENT,
    LABELS,
    OUR_VOLUMES,
    POD_FIELDS,
    RESOURCES,
    SOCKET_VOLUME,
    find_prefix,
)

_KEY_OF_LIST = {
    **dict.fromkeys(("containers", "initContainers"), "name"),
    **dict.fromkeys(("volumes", "imagePullSecrets", "resourceClaims"), "name"),
    **dict.fromkeys(("env", "claims", "schedulingGates"), "name"),
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
}
_MERGED = ("containers", "initContainers")
_NAMED = (*_MERGED, "volumes")
_ADDED = (
    "tolerations",
    "searches",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
# Keys of `pod` that do not apply to a pod without a broker.
_NOT_FOR_OTHERS = ("containers", "initContainers", "volumes")


def merge_pod(template: Manifest, *overlays: Mapping[str, Any]) -> Manifest:
    """Return the template with the overlays merged into it, one after the other.

    With `hostNetwork` the pod uses the cluster's DNS unless its `dnsPolicy` is set.
    """
    found = template
    for overlay in overlays:
        found = _merge(found, overlay, "")
    spec = found["spec"]
    if spec.get("hostNetwork") and "dnsPolicy" not in spec:
        # By default such a pod uses its node's DNS, which does not know the lead's
        # name.
        return {**found, "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return found


def without_containers(overlay: Mapping[str, Any]) -> Manifest:
    """Return the overlay without containers and volumes, for a pod without a broker.

    What remains decides where the pod runs and how it is connected.
    """
    spec = overlay.get("spec", {})
    kept = {key: value for key, value in spec.items() if key not in _NOT_FOR_OTHERS}
    return {**overlay, "spec": kept}


def check_overlay(
    overlay: Mapping[str, Any], where: str, gpu_resource: str
) -> Iterator[str]:
    """Yield a sentence for each key that may not be set; it begins with the key's path.

    `where` is the path of the overlay. The API server checks the types and names of all
    other keys.
    """
    for key, value in overlay.items():
        if key not in ("metadata", "spec"):
            yield f"{where}.{key}: a pod's template has metadata and spec"
        elif not isinstance(value, Mapping):
            yield f"{where}.{key}: expected a table"
        elif key == "metadata":
            yield from _check_metadata(value, f"{where}.metadata")
        else:
            yield from _check_spec(value, f"{where}.spec", gpu_resource)


def _merge(base: Any, change: Any, field: str) -> Any:
    if isinstance(base, Mapping) and isinstance(change, Mapping):
        changed = {
            key: _merge(base.get(key), value, key) for key, value in change.items()
        }
        return {**base, **changed}
    if not (isinstance(base, list) and isinstance(change, list)):
        return change
    if field in _ADDED:
        return [*base, *change]
    key = _KEY_OF_LIST.get(field)
    return _merge_by_key(base, change, field, key) if key else change


def _merge_by_key(
    base: Sequence[Manifest], change: Sequence[Manifest], field: str, key: str
) -> list[Manifest]:
    """Return the entries of both lists, merged by key.

    An entry of `change` replaces the one with its key; containers are merged.
    """
    merged = {entry.get(key): entry for entry in base}
    for entry in change:
        there = merged.get(entry.get(key))
        fused = _merge(there, entry, "") if there and field in _MERGED else entry
        merged[entry.get(key)] = fused
    return list(merged.values())


def _check_metadata(metadata: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, value in metadata.items():
        rules = {"labels": LABELS, "annotations": ANNOTATIONS}.get(key)
        if rules is None:
            yield f"{where}.{key}: only labels and annotations can be set"
        elif not isinstance(value, Mapping):
            yield f"{where}.{key}: expected a table"
        else:
            for name in value:
                advice = find_prefix(name, rules)
                if advice:
                    yield f"{where}.{key}.{name}: {advice}"


def _check_spec(
    spec: Mapping[str, Any], where: str, gpu_resource: str
) -> Iterator[str]:
    for key, value in spec.items():
        if key in POD_FIELDS:
            yield f"{where}.{key}: {POD_FIELDS[key]}"
        elif key == "securityContext":
            yield from _check_user(value, f"{where}.{key}")
        elif key == "nodeSelector" and not isinstance(value, Mapping):
            yield f"{where}.{key}: expected a table"
        elif key in (*_NAMED, "tolerations", "imagePullSecrets"):
            if not _is_list_of_tables(value):
                yield f"{where}.{key}: expected a list of tables"
            elif key in _NAMED:
                yield from _check_named(key, value, where, gpu_resource)


def _check_named(
    key: str, entries: Sequence[Mapping[str, Any]], where: str, gpu_resource: str
) -> Iterator[str]:
    """Check the containers, init containers or volumes."""
    for number, entry in enumerate(entries):
        name = entry.get("name")
        at = f"{where}.{key}.{name}"
        if not isinstance(name, str) or not name:
            yield f"{where}.{key}[{number}]: has no name"
        elif key == "volumes":
            yield from _check_volume(name, at)
        elif key == "containers" and name == BROKER:
            yield from _check_broker(entry, at, gpu_resource)
        else:
            yield from _check_other(entry, at)


def _check_volume(name: str, where: str) -> Iterator[str]:
    advice = find_prefix(name, OUR_VOLUMES)
    if advice:
        yield f"{where}: {advice}"


def _check_broker(
    container: Mapping[str, Any], where: str, gpu_resource: str
) -> Iterator[str]:
    for key, value in container.items():
        at = f"{where}.{key}"
        if key in CONTAINER_FIELDS:
            yield f"{at}: {CONTAINER_FIELDS[key]}"
        elif key == "securityContext":
            yield from _check_user(value, at)
        elif key == "resources":
            yield from _check_resources(value, at, gpu_resource)
        elif key in ("env", "volumeMounts"):
            if not _is_list_of_tables(value):
                yield f"{at}: expected a list of tables"
                continue
            if key == "volumeMounts":
                yield from _check_mounts(value, at)
            else:
                yield from _check_variables(value, at)


def _check_variables(
    variables: Sequence[Mapping[str, Any]], where: str
) -> Iterator[str]:
    for number, entry in enumerate(variables):
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            yield f"{where}[{number}]: has no name"
        elif name in ENVIRONMENT:
            yield f"{where}.{name}: {ENVIRONMENT[name]}"


def _check_other(container: Mapping[str, Any], where: str) -> Iterator[str]:
    if container["name"] == BROKER:
        yield f"{where}: is the name of the container that runs the broker"
    if container["name"] == VIEW:
        yield f"{where}: copies Flux for the broker; use view and view_paths"
    if container["name"] in (PREPARE, MUNGED):
        yield f"{where}: has the keys of followers, with multi_user; use another name"
    mounts = container.get("volumeMounts", [])
    if not _is_list_of_tables(mounts):
        yield f"{where}.volumeMounts: expected a list of tables"
        return
    for mount in mounts:
        name = str(mount.get("name"))
        if name in OUR_VOLUMES and name != SOCKET_VOLUME:
            yield (
                f"{where}.volumeMounts.{mount.get('mountPath')}: volume {name} is only"
                " for the broker, as it has the certificate or the broker's settings"
            )


def _check_mounts(mounts: Sequence[Mapping[str, Any]], where: str) -> Iterator[str]:
    for mount in mounts:
        path = str(mount.get("mountPath"))
        if covers_ours(path):
            yield (
                f"{where}.{path}: certificate and settings are below {OUR_PATH}, a"
                f" munge key in {MUNGE_PATH}; mount it at another path"
            )


def _check_user(context: Any, where: str) -> Iterator[str]:
    if not isinstance(context, Mapping):
        yield f"{where}: expected a table"
        return
    for key in ("runAsUser", "runAsNonRoot", "fsGroup"):
        if key in context:
            yield f"{where}.{key}: use user: only that user may read the certificate"


def _check_resources(resources: Any, where: str, gpu_resource: str) -> Iterator[str]:
    rules = {**RESOURCES, gpu_resource: "use gpus of the offer, as Flux counts them"}
    if not isinstance(resources, Mapping):
        yield f"{where}: expected a table"
        return
    for kind in ("requests", "limits"):
        of_kind = resources.get(kind, {})
        if not isinstance(of_kind, Mapping):
            yield f"{where}.{kind}: expected a table"
            continue
        for key in of_kind:
            if key in rules and (kind, key) != ("limits", "cpu"):
                yield f"{where}.{kind}.{key}: {rules[key]}"


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, Mapping) for v in value)
