# SPDX-License-Identifier: MIT
"""`share_socket` of the settings: the broker's socket, for further containers of `pod`.

The broker's run directory is then in a volume of its own, apart from the certificate,
which only the broker may read. A process that can open the socket and runs as the
followers' user has the rights of the instance owner.
"""

from __future__ import annotations

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import RUN_PATH, SOCKET_PATH
from burst.kits.pods.template.overlay_rules import SOCKET_VOLUME


def rundir_of(settings: PodSettings) -> str:
    """Return the broker's run directory; its socket is the file `local` in it."""
    # A subdirectory, as a broker refuses a directory that its user does not own.
    return f"{SOCKET_PATH if settings.share_socket else RUN_PATH}/broker"


def socket_mounts(settings: PodSettings) -> list[Manifest]:
    """Return the broker's volumeMounts for the shared socket."""
    if not settings.share_socket:
        return []
    return [{"name": SOCKET_VOLUME, "mountPath": SOCKET_PATH}]


def socket_volumes(settings: PodSettings, memory: Manifest) -> list[Manifest]:
    """Return a pod's volumes for the shared socket.

    `memory` is the emptyDir that the run directory has otherwise.
    """
    if not settings.share_socket:
        return []
    return [{"name": SOCKET_VOLUME, "emptyDir": memory}]
