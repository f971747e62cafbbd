# SPDX-License-Identifier: MIT
"""Volumes and mounts of the settings' words: `volumes`, `shm`, `scratch`, `cwd`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import PRIVATE, SHM_PATH
from burst.kits.pods.template.volume_table import VolumeTable


def storage_volumes(settings: PodSettings) -> list[Manifest]:
    """Return the volumes of a pod."""
    return [{"name": name, **source} for name, source, _, _ in _all(settings)]


def storage_mounts(settings: PodSettings) -> list[Manifest]:
    """Return a container's volumeMounts of these volumes."""
    return [
        {"name": name, "mountPath": path, **({} if writable else {"readOnly": True})}
        for name, _, path, writable in _all(settings)
    ]


def minicluster_volumes(settings: PodSettings) -> Manifest:
    """Return the volumes of a MiniCluster's container, by name.

    Of empty directories it has one at `/dev/shm` only.
    """
    found: Manifest = {}
    for name, table in settings.volumes.items():
        source: Manifest
        if table.csi:
            source = {"csiDriver": table.csi["driver"]}
            if "volumeAttributes" in table.csi:
                source["csiDriverAttributes"] = table.csi["volumeAttributes"]
        elif table.secret:
            source = {"secretName": table.secret}
        else:
            source = {"claimName": table.claim}
        where = {"path": table.path, "readOnly": not table.writable}
        found[f"volume-{name}"] = {**source, **where}
    if settings.shm:
        found["shm"] = {
            "emptyDir": True,
            "emptyDirMedium": "memory",
            "emptyDirSizeLimit": settings.shm,
            "path": SHM_PATH,
        }
    return found


def known_directories(settings: PodSettings) -> tuple[str, ...]:
    """Return the directories that each follower has, whatever is in its image.

    They may have others below them.
    """
    mounted = (path for _, _, path, _ in _all(settings))
    found = (*PRIVATE, *mounted, *settings.cwd, *settings.host_paths)
    return tuple(dict.fromkeys(str(PurePosixPath(path)) for path in found))


def make_directories(settings: PodSettings) -> str:
    """Return a line for sh that makes the directories of `cwd`; empty without any."""
    return f"mkdir -p {shlex.join(settings.cwd)}\n" if settings.cwd else ""


def _all(settings: PodSettings) -> Iterator[tuple[str, Manifest, str, bool]]:
    """Yield name, source, path, and whether followers may write there."""
    for name, table in settings.volumes.items():
        yield f"volume-{name}", _source(table), table.path, table.writable
    if settings.shm:
        memory = {"medium": "Memory", "sizeLimit": settings.shm}
        yield "shm", {"emptyDir": memory}, SHM_PATH, True
    if settings.scratch:
        disk = {"sizeLimit": settings.scratch}
        yield "scratch", {"emptyDir": disk}, settings.scratch_path, True
    for number, path in enumerate(_outermost(settings)):
        yield f"cwd-{number}", {"emptyDir": {}}, path, True


def _source(table: VolumeTable) -> Manifest:
    server, _, directory = table.nfs.partition(":")
    sources: dict[str, Any] = {
        "claim": {"persistentVolumeClaim": {"claimName": table.claim}},
        "nfs": {"nfs": {"server": server, "path": directory}},
        "csi": {"csi": dict(table.csi)},
        "secret": {"secret": {"secretName": table.secret}},
        "config_map": {"configMap": {"name": table.config_map}},
    }
    return dict(sources[table.source])


def _outermost(settings: PodSettings) -> list[str]:
    """Return those of `cwd` that are within nothing that is mounted, nor each other."""
    there = [*PRIVATE, *settings.host_paths]
    there += [table.path for table in settings.volumes.values()]
    there += [settings.scratch_path] if settings.scratch else []
    found: list[str] = []
    for path in sorted(settings.cwd, key=lambda p: len(PurePosixPath(p).parts)):
        pure = PurePosixPath(path)
        if not any(pure.is_relative_to(known) for known in (*there, *found)):
            found.append(str(pure))
    return found
