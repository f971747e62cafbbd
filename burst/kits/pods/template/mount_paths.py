# SPDX-License-Identifier: MIT
"""The paths in a follower's container, and where settings may mount more."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

OUR_PATH = "/burst"
"""The directory with the certificate, settings and run directory of a broker."""
CONFIG_PATH = f"{OUR_PATH}/config"
"""The ConfigMap: broker.toml, the hosts by index, scripts."""
SECRET_PATH = f"{OUR_PATH}/secret"
"""The Secret, with the certificate. Unless brokers run as root, their group can read
the file. As a broker refuses such a file, it is copied to another place."""
RUN_PATH = f"{OUR_PATH}/run"
"""The broker's run directory and its copy of the certificate, in memory."""
SOCKET_PATH = f"{OUR_PATH}/socket"
"""The parent of the broker's run directory if other containers share its socket."""
VIEW_COPY_PATH = f"{OUR_PATH}/view"
"""The directory to which the init container of a view copies. Brokers mount the copies
at other paths, at which the view's image may have its own directories."""
MUNGE_PATH = "/run/munge"
"""Socket and key of the munged of `munge_key`; libmunge looks for the socket here."""
MUNGE_KEY_PATH = f"{OUR_PATH}/munge-key"
"""The munge key with `multi_user`. No broker's container mounts this directory."""
KEY_PATH = f"{RUN_PATH}/key"
"""The broker's copy of the certificate with `multi_user`. It is in a directory of its
own, as guests may pass through RUN_PATH."""
USER_FILES = ("/etc/passwd", "/etc/group")
"""Files that are replaced in followers with `multi_user`, unless its users are those of
the image."""
USERS_PATH = f"{OUR_PATH}/users"
"""passwd and group with `multi_user`, merged from the image's lines and ours."""
RESULT_PATH = "/dev/termination-log"
"""The file, made by the kubelet, for a container's termination message."""
SHM_PATH = "/dev/shm"  # noqa: S108
PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108  of each pod
"""Directories that are private to each follower."""
_OF_THE_IMAGE = (
    *("/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"),
    *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin"),
)
_OF_THE_KERNEL = ("/dev", "/proc", "/sys")


def covers_ours(path: str) -> bool:
    """Return whether a mount at the path would hide or change what a broker needs."""
    # A container runtime resolves "." and ".." in a path, too.
    plain = posixpath.normpath("/" + path.strip("/"))
    hides = plain in ("/", OUR_PATH, MUNGE_PATH, RESULT_PATH)
    return hides or plain.startswith((f"{OUR_PATH}/", f"{MUNGE_PATH}/"))


def _is_below_root(path: str) -> bool:
    """Return whether a path is absolute, without `..`, and not the root."""
    pure = PurePosixPath(path)
    return pure.is_absolute() and ".." not in pure.parts and str(pure) != "/"


def check_paths(paths: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each path at which nothing can be mounted.

    `paths` maps the keys of settings to paths; a sentence begins with the key.
    """
    seen: dict[str, str] = {}
    for key, path in paths.items():
        plain = str(PurePosixPath(path))
        if not _is_below_root(path):
            yield f"{key}: {path!r} is not an absolute path below /"
        elif covers_ours(plain):
            yield f"{key}: certificate, keys and settings of followers are at {path}"
        elif plain in PRIVATE:
            yield f"{key}: followers have a {plain} of their own"
        elif plain in seen:
            yield f"{key}: {path} is also {seen[plain]}"
        seen[plain] = key


def check_empty(paths: Mapping[str, str], mounted: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each path at which an empty directory would do harm.

    A path inside one of `mounted` is made in that volume, and hides nothing. `paths`
    maps the keys of settings to paths; a sentence begins with the key.
    """
    for key, path in paths.items():
        pure = PurePosixPath(path)
        if any(pure.is_relative_to(known) for known in mounted):
            continue
        if str(pure) in _OF_THE_IMAGE:
            yield f"{key}: an empty {path} would hide what the image has there"
        elif any(pure.is_relative_to(known) for known in _OF_THE_KERNEL):
            yield f"{key}: {path} is the kernel's; name a directory of your own"


def check_host_paths(paths: Sequence[str], mounted: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each of `host_paths` that cannot be mounted.

    `mounted` maps the keys of other settings to the paths at which they mount.
    """
    seen = {str(PurePosixPath(path)): key for key, path in mounted.items()}
    for path in paths:
        plain = str(PurePosixPath(path))
        if not _is_below_root(path):
            yield f"host_paths: {path!r} is not an absolute path below /"
        elif plain in PRIVATE:
            yield f"host_paths: followers have a {plain} of their own"
        elif plain in seen:
            yield f"host_paths: {path} is also {seen[plain]}"
        seen[plain] = "host_paths"
