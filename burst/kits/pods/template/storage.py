# SPDX-License-Identifier: MIT
"""The directories that followers have: those of `cwd`, and mounted volumes."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import PRIVATE
from burst.kits.pods.template.site_pod import site_mounts


def storage_volumes(settings: PodSettings) -> list[Manifest]:
    """Return the volumes of a pod for `cwd`."""
    return [{"name": name, "emptyDir": {}} for name in _cwd_volumes(settings)]


def storage_mounts(settings: PodSettings) -> list[Manifest]:
    """Return a container's volumeMounts of these volumes."""
    return [
        {"name": name, "mountPath": path}
        for name, path in _cwd_volumes(settings).items()
    ]


def known_directories(settings: PodSettings) -> tuple[str, ...]:
    """Return the directories that each follower has, whatever is in its image.

    Other directories may be below them.
    """
    mounted = [each.path for each in site_mounts(settings)]
    found = (*PRIVATE, *mounted, *settings.cwd, *settings.host_paths)
    return tuple(dict.fromkeys(str(PurePosixPath(path)) for path in found))


def make_directories(settings: PodSettings) -> str:
    """Return a line for sh that makes the directories of `cwd`; empty without any."""
    return f"mkdir -p {shlex.join(settings.cwd)}\n" if settings.cwd else ""


def _cwd_volumes(settings: PodSettings) -> dict[str, str]:
    """Return the volume name and path for each directory of `cwd` that needs a volume.

    A directory inside a mounted path, or inside another of `cwd`, needs none.
    """
    there = [*PRIVATE, *settings.host_paths]
    there += [each.path for each in site_mounts(settings)]
    found: list[str] = []
    for path in sorted(settings.cwd, key=lambda p: len(PurePosixPath(p).parts)):
        pure = PurePosixPath(path)
        if not any(pure.is_relative_to(known) for known in (*there, *found)):
            found.append(str(pure))
    return {f"cwd-{number}": path for number, path in enumerate(found)}
