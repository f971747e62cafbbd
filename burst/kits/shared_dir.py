# SPDX-License-Identifier: MIT
"""Checks a provider's directory that the daemon's host and the nodes are to share."""

from __future__ import annotations

import os
from pathlib import Path

from burst.errors import ProviderError
from burst.kits.private_dir import PrivateDirectory
from burst.model.finding import Finding, note, ok, wrong

# File systems that one host alone has, as proc(5) names them.
_OWN = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "overlay")
# access(2) says to root that it may write there.
_KERNELS = ("proc", "sysfs")


def examine_shared_dir(home: PrivateDirectory) -> Finding:
    """Return whether bursts can have their files there. Nothing is made.

    A file system that only this host has is noted, as it may be exported to the nodes.
    """
    try:
        home.check()
    except ProviderError as error:
        return wrong(error.what, error.advice)
    parents = (home.path, *home.path.parents)
    nearest = next(place for place in parents if place.exists())
    kind = _file_system(nearest)
    if kind in _KERNELS or not os.access(nearest, os.W_OK | os.X_OK):
        return wrong(
            f"{home.path}: cannot be made, since {nearest} cannot be written",
            "set dir to a directory of this user that the nodes share",
        )
    if kind in _OWN:
        return note(
            f"{home.path} is on a file system of this host ({kind})",
            "set dir to one that the nodes share, unless it is exported to them",
        )
    return ok(f"bursts have their files in {home.path} ({kind})")


def _file_system(place: Path) -> str:
    """Return the type of the file system that a directory is on, by proc(5)."""
    found = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mounted, kind, *_ = line.split(" ")
        found[mounted.replace("\\040", " ")] = kind
    path = place.resolve()
    return next((found[str(p)] for p in (path, *path.parents) if str(p) in found), "")
