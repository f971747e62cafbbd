# SPDX-License-Identifier: MIT
"""Checks what nodes need that the provider does not set up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from burst.errors import ProviderError
from burst.kits.private_dir import PrivateDirectory
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity


def examine_lead(
    lead: LeadIdentity | None,
    for_guests: str = "install them there, or use a lead that serves one user",
) -> Iterator[Finding]:
    """Yield a note for each thing that the nodes must have; none without a `lead`.

    `for_guests` is the advice for a lead of many users; empty if the provider sets up
    all that guests' jobs need.
    """
    if lead is None:
        return
    if for_guests and lead.access.allow_guest_user:
        yield note(
            "the lead serves all users: their jobs need flux-imp, the lead's munge key"
            " and the same user ids on the nodes",
            for_guests,
        )
    if lead.systemd:
        yield note(
            "the lead has [systemd] enable: a follower comes online only if the owner"
            " of the instance has a systemd instance on its node",
            "run loginctl enable-linger on each node, or use a lead without it",
        )


# File systems of a single host, as proc(5) names them.
_OWN = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "ramfs", "overlay")
# Nobody can make files in these, although access(2) tells root so.
_KERNELS = ("proc", "sysfs")


def examine_shared_dir(home: PrivateDirectory) -> Finding:
    """Check that bursts can have their files there, without making anything.

    A file system of this host alone is only a note, as it may be exported to the nodes.
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
    """Return the type of a directory's file system (proc(5)); empty if unknown."""
    found = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mounted, kind, *_ = line.split(" ")
        found[mounted.replace("\\040", " ")] = kind
    path = place.resolve()
    return next((found[str(p)] for p in (path, *path.parents) if str(p) in found), "")
