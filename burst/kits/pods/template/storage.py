# SPDX-License-Identifier: MIT
"""The volumes that settings give a follower, and the directories that it has.

If a container of `pod` mounts `socket`, the broker's run directory is in a volume of
its own, apart from the certificate, which only the broker may read. A process that can
open the socket and runs as the followers' user has the rights of the instance owner.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import (
    MUNGE_PATH,
    PRIVATE,
    RUN_PATH,
    SOCKET_PATH,
)
from burst.kits.pods.template.munge import KEY_MEMORY
from burst.kits.pods.template.overlay_rules import SOCKET_VOLUME
from burst.kits.pods.template.site_pod import Mounted, site_mounts
from burst.kits.pods.template.view import has_view
from burst.kits.pods.template.view_paths import targets_of


def mounts_of(volumes: Iterable[Mounted]) -> list[Manifest]:
    """Return a container's volumeMounts of these volumes."""
    return [each.mount for each in volumes]


def volumes_of_settings(settings: PodSettings, memory: Manifest) -> list[Mounted]:
    """Return the volumes of the broker's container, besides those of any follower.

    `memory` is an emptyDir for the broker's run directory.
    """
    return [
        *socket_volumes(settings, memory),
        *munge_volumes(settings),
        *host_volumes(settings),
        *(_mounted(n, p, emptyDir={}) for n, p in _cwd_volumes(settings).items()),
        *_view_volumes(settings),
    ]


def socket_volumes(
    settings: PodSettings, memory: Manifest | None = None
) -> list[Mounted]:
    """Return the volume of the shared socket, for further containers of `pod`."""
    shared = settings.shares_socket
    return [_mounted(SOCKET_VOLUME, SOCKET_PATH, emptyDir=memory)] if shared else []


def munge_volumes(settings: PodSettings) -> list[Mounted]:
    """Return the volume for munge, in memory, as it holds a copy of the key."""
    has_key = settings.munge_key
    return [_mounted("munge", MUNGE_PATH, emptyDir=KEY_MEMORY)] if has_key else []


def host_volumes(settings: PodSettings) -> list[Mounted]:
    """Return the volumes of host paths."""
    return [
        _read_only(_mounted(name, path, hostPath={"path": path}))
        for path, name in host_paths(settings).items()
    ]


def host_paths(settings: PodSettings) -> dict[str, str]:
    """Return volume names by host path."""
    return {path: f"host-{number}" for number, path in enumerate(settings.host_paths)}


def _view_volumes(settings: PodSettings) -> list[Mounted]:
    """Return the volumes of the copied directories."""
    paths = targets_of(settings.view_paths) if has_view(settings) else ()
    return [
        _read_only(_mounted(f"view-{number}", path, emptyDir={}))
        for number, path in enumerate(paths)
    ]


def _mounted(name: str, path: str, **source: Manifest | None) -> Mounted:
    return Mounted({"name": name, **source}, {"name": name, "mountPath": path})


def _read_only(each: Mounted) -> Mounted:
    return each._replace(mount={**each.mount, "readOnly": True})


def rundir_of(settings: PodSettings) -> str:
    """Return the broker's run directory; its socket is the file `local` in it."""
    # A subdirectory, as a broker refuses a directory that its user does not own.
    return f"{SOCKET_PATH if settings.shares_socket else RUN_PATH}/broker"


def known_directories(settings: PodSettings) -> tuple[str, ...]:
    """Return the directories that each follower has, whatever is in its image.

    Other directories may be below them.
    """
    mounted = [each.path for each in site_mounts(settings.pod)]
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
    there += [each.path for each in site_mounts(settings.pod)]
    found: list[str] = []
    for path in sorted(settings.cwd, key=lambda p: len(PurePosixPath(p).parts)):
        pure = PurePosixPath(path)
        if not any(pure.is_relative_to(known) for known in (*there, *found)):
            found.append(str(pure))
    return {f"cwd-{number}": path for number, path in enumerate(found)}
