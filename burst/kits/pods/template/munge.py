# SPDX-License-Identifier: MIT
"""A munged beside each follower's broker, with the key of the lead's (munged(8)).

Brokers need none: they authenticate with the certificate. It is for what else uses
munge, such as flux-security where it signs the jobs of several users.
"""

from __future__ import annotations

import base64
from pathlib import Path

from burst.errors import Refused
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import MUNGE_PATH

KEY = "munge.key"
"""Its name in the burst's Secret, beside the certificate."""
KEY_MEMORY: Manifest = {"medium": "Memory", "sizeLimit": "16Mi"}
"""An empty directory for a key, and what a munged writes."""
FIND_MUNGED = """\
PATH="$PATH:/usr/sbin:/usr/local/sbin"
if ! command -v munged >/dev/null; then
    echo "munge_key is set, and the image has no munged" >&2
    exit 1
fi
"""
"""Lines for sh after which munged is found, or which end the script."""
# In bytes, as munged takes it.
_LEAST, _MOST = 32, 1024


def munge_data(settings: PodSettings) -> dict[str, str]:
    """Return what of it is in the burst's Secret. Raises Refused."""
    if not settings.munge_key:
        return {}
    try:
        key = Path(settings.munge_key).read_bytes()
    except OSError as error:
        raise Refused(
            f"munge_key: {settings.munge_key} cannot be read: {error.strerror}",
            "copy the lead's key to a file that the daemon's user alone can read",
        ) from error
    if not _LEAST <= len(key) <= _MOST:
        raise Refused(
            f"munge_key: {settings.munge_key} has {len(key)} bytes, and the key of a"
            f" munged {_LEAST} to {_MOST}",
            "name the file that the lead's munged reads",
        )
    return {KEY: base64.b64encode(key).decode()}


def start_munged(settings: PodSettings, mounted: str, own: str = MUNGE_PATH) -> str:
    """Return lines for sh that start it; empty without a key.

    `mounted` is the directory with the Secret, `own` that of socket and files. They end
    the script if there is no munged, or it does not start. With `multi_user` it has a
    container of its own.
    """
    if not settings.munge_key or settings.multi_user:
        return ""
    # --force: it warns, where it would refuse, of a directory that the pod's group may
    # write. The container is the only one that mounts it.
    return f"""\
{FIND_MUNGED}mkdir -p {own}
# What an earlier munged in this pod left.
rm -f {own}/munge*
(umask 077; cat {mounted}/{KEY} > {own}/{KEY})
munged --force --key-file={own}/{KEY} --socket={own}/munge.socket.2 \\
    --pid-file={own}/munged.pid --seed-file={own}/munge.seed \\
    --log-file={own}/munged.log
"""


def munge_mounts(settings: PodSettings) -> list[Manifest]:
    """Return a container's volumeMounts of it."""
    if not settings.munge_key:
        return []
    return [{"name": "munge", "mountPath": MUNGE_PATH}]


def munge_volumes(settings: PodSettings) -> list[Manifest]:
    """Return a pod's volumes of it, in memory, as they hold the key's copy."""
    if not settings.munge_key:
        return []
    return [{"name": "munge", "emptyDir": KEY_MEMORY}]
