# SPDX-License-Identifier: MIT
"""At which paths a follower's container has what, and where settings may mount more."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

OUR_PATH = "/burst"
"""Certificate, settings and run directory of a broker are below it."""
CONFIG_PATH = f"{OUR_PATH}/config"
"""The ConfigMap: broker.toml, the hosts by index, scripts."""
SECRET_PATH = f"{OUR_PATH}/secret"
"""The Secret, with the certificate. Unless brokers run as root, their group can read it
there. A broker refuses such a file, so it is copied from there."""
RUN_PATH = f"{OUR_PATH}/run"
"""The broker's run directory and its copy of the certificate, in memory."""
SOCKET_PATH = f"{OUR_PATH}/socket"
"""The broker's run directory is below it if other containers share its socket."""
VIEW_COPY_PATH = f"{OUR_PATH}/view"
"""What the init container of a view copies to. Brokers have it elsewhere: a directory
of the view's image may be there."""
MUNGE_PATH = "/run/munge"
"""Socket and key of the munged of `munge_key`; libmunge looks for the socket here."""
MUNGE_KEY_PATH = f"{OUR_PATH}/munge-key"
"""With `multi_user` the key is here instead, which no broker's container mounts."""
KEY_PATH = f"{RUN_PATH}/key"
"""With `multi_user` the broker's copy of the certificate is here, as guests may pass
through the directory above."""
USER_FILES = ("/etc/passwd", "/etc/group")
"""With `multi_user` and its users followers have these of the daemon's."""
USERS_PATH = f"{OUR_PATH}/users"
"""With `multi_user`: passwd and group as they are merged of the image's and ours."""
RESULT_PATH = "/dev/termination-log"
"""Where the kubelet looks for a container's last message; it makes the file."""
SHM_PATH = "/dev/shm"  # noqa: S108
PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108  of each pod
"""Directories that each follower has for itself."""
_OF_THE_IMAGE = (
    *("/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"),
    *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin"),
)
_OF_THE_KERNEL = ("/dev", "/proc", "/sys")


def covers_ours(path: str) -> bool:
    """Return whether a mount there would hide what a broker needs, or be within it."""
    # A container runtime follows "." and "..", too.
    plain = posixpath.normpath("/" + path.strip("/"))
    hides = plain in ("/", OUR_PATH, MUNGE_PATH, RESULT_PATH)
    return hides or plain.startswith((f"{OUR_PATH}/", f"{MUNGE_PATH}/"))


def _is_below_root(path: str) -> bool:
    """Return whether it is an absolute path without `..`, and not the root."""
    pure = PurePosixPath(path)
    return pure.is_absolute() and ".." not in pure.parts and str(pure) != "/"


def check_paths(paths: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each path, by its key, at which nothing can be mounted."""
    seen: dict[str, str] = {}
    for key, path in paths.items():
        plain = str(PurePosixPath(path))
        if not _is_below_root(path):
            yield f"{key}: {path!r} is no absolute path below /"
        elif covers_ours(plain):
            yield f"{key}: certificate, keys and settings of followers are at {path}"
        elif plain in PRIVATE:
            yield f"{key}: followers have a {plain} of their own"
        elif plain in seen:
            yield f"{key}: {path} is also {seen[plain]}"
        seen[plain] = key


def check_empty(paths: Mapping[str, str], mounted: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each path, by its key, where an empty directory would harm.

    One within what is `mounted` is made there, and hides nothing.
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

    `mounted` has the paths at which others are mounted, by the keys that say so.
    """
    seen = {str(PurePosixPath(path)): key for key, path in mounted.items()}
    for path in paths:
        plain = str(PurePosixPath(path))
        if not _is_below_root(path):
            yield f"host_paths: {path!r} is no absolute path below /"
        elif plain in PRIVATE:
            yield f"host_paths: followers have a {plain} of their own"
        elif plain in seen:
            yield f"host_paths: {path} is also {seen[plain]}"
        seen[plain] = "host_paths"
