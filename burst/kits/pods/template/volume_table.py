# SPDX-License-Identifier: MIT
"""The tables `volumes` of the settings, and what sizes may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
# Of a volume, less our prefix.
_LONGEST = 63 - len("volume-")
_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i)?\Z")
_SOURCES = ("claim", "nfs", "csi", "secret", "config_map")
_READ_ONLY = ("secret", "config_map")
LACKS = 'a MiniCluster cannot have it; set form = "job"'
"""Of a key that is refused with form operator."""


class VolumeTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """`[providers.NAME.volumes.VOLUME]`: storage of the cluster; set one source."""

    path: str
    """Where followers have it."""
    writable: bool = False
    """Secrets and ConfigMaps never are."""
    claim: str = ""
    """A PersistentVolumeClaim in the namespace. Followers on several nodes need one
    with ReadWriteMany or ReadOnlyMany."""
    nfs: str = ""
    """`SERVER:/DIRECTORY`."""
    csi: Mapping[str, Any] = {}
    """An inline volume of a CSI driver, as in a pod's spec: `driver`,
    `volumeAttributes`..."""
    secret: str = ""
    """A Secret in the namespace, a file for each key. Jobs of all users can read it."""
    config_map: str = ""
    """A ConfigMap in the namespace, a file for each key."""

    @property
    def source(self) -> str:
        """The one key of those that is set."""
        return next(key for key in _SOURCES if getattr(self, key))


def check_volumes(volumes: Mapping[str, VolumeTable]) -> Iterator[str]:
    """Yield a sentence for each key that is wrong, which begins with its path."""
    for name, table in volumes.items():
        where = f"volumes.{name}"
        if not _NAME.match(name) or len(name) > _LONGEST:
            yield (
                f"{where}: a volume's name has lower-case letters, digits and -, up to"
                f" {_LONGEST}"
            )
        given = [key for key in _SOURCES if getattr(table, key)]
        if len(given) != 1:
            yield f"{where}: set one of {', '.join(_SOURCES)}" + (
                f", not {' and '.join(given)}" if given else ""
            )
        for key in given:
            if table.writable and key in _READ_ONLY:
                yield f"{where}.writable: {key} is never writable; leave it out"
        if table.nfs and table.nfs.find(":/") < 1:
            yield f"{where}.nfs: {table.nfs!r} is not SERVER:/DIRECTORY"
        if table.csi and not table.csi.get("driver"):
            yield f"{where}.csi: has no driver"


def check_for_minicluster(volumes: Mapping[str, VolumeTable]) -> Iterator[str]:
    """Yield a sentence for each volume that a MiniCluster cannot have.

    The operator mounts a ConfigMap under another volume's name, and of a CSI volume it
    has two keys.
    """
    for name, table in volumes.items():
        if table.source in ("nfs", "config_map"):
            yield f"volumes.{name}.{table.source}: {LACKS}"
        for key in table.csi:
            if key not in ("driver", "volumeAttributes"):
                yield f"volumes.{name}.csi.{key}: {LACKS}"


def check_sizes(sizes: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each size, by its key, that Kubernetes would not read."""
    for key, size in sizes.items():
        if size and not _SIZE.match(size):
            yield f'{key}: {size!r} is not a size such as "8Gi"'
