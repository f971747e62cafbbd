# SPDX-License-Identifier: MIT
"""A munged beside each follower's broker, with the key of the lead's (munged(8)).

Brokers need none: they authenticate with the certificate. It is for what else uses
munge, such as flux-security where it signs the jobs of several users.
"""

from __future__ import annotations

import base64

from burst.kits.kube.kinds import Manifest
from burst.kits.munge_key import read_munge_key
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


def munge_data(settings: PodSettings) -> dict[str, str]:
    """Return what of it is in the burst's Secret. Raises Refused."""
    if not settings.munge_key:
        return {}
    return {KEY: base64.b64encode(read_munge_key(settings.munge_key)).decode()}


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
