# SPDX-License-Identifier: MIT
"""A munged beside each follower's broker, with the key of the lead's (munged(8)).

Brokers do not need it: they authenticate with the certificate. It is for other users of
munge, such as flux-security if it signs the jobs of several users.
"""

from __future__ import annotations

import base64

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.mount_paths import MUNGE_PATH
from burst.kits.secret_file import read_munge_key

KEY = "munge.key"
"""The name of the key in the burst's Secret, beside the certificate."""
KEY_MEMORY: Manifest = {"medium": "Memory", "sizeLimit": "16Mi"}
"""An emptyDir in memory, for the key and the files that a munged writes."""
FIND_MUNGED = """\
PATH="$PATH:/usr/sbin:/usr/local/sbin"
if ! command -v munged >/dev/null; then
    echo "munge_key is set, and the image has no munged" >&2
    exit 1
fi
"""
"""Lines for sh that let the shell find munged, or end the script."""


def munge_data(settings: PodSettings) -> dict[str, str]:
    """Return the entries for munge in the burst's Secret. Raises Refused."""
    if not settings.munge_key:
        return {}
    return {KEY: base64.b64encode(read_munge_key(settings.munge_key)).decode()}


def start_munged(settings: PodSettings, mounted: str, own: str = MUNGE_PATH) -> str:
    """Return lines for sh that start munged; empty without a key.

    `mounted` is the directory with the Secret, `own` the directory for socket and
    files. The lines end the script if there is no munged, or if it does not start. With
    `multi_user` they are empty, as munged has a container of its own.
    """
    if not settings.munge_key or settings.multi_user:
        return ""
    # With --force, munged only warns about a directory that the pod's group may write,
    # and does not refuse it. This container is the only one that mounts it.
    return f"""\
{FIND_MUNGED}mkdir -p {own}
# What an earlier munged in this pod left.
rm -f {own}/munge*
(umask 077; cat {mounted}/{KEY} > {own}/{KEY})
munged --force --key-file={own}/{KEY} --socket={own}/munge.socket.2 \\
    --pid-file={own}/munged.pid --seed-file={own}/munge.seed \\
    --log-file={own}/munged.log
"""
