# SPDX-License-Identifier: MIT
"""Reads secrets from files: a token that nobody else can read, the key of a munged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from burst.errors import ConfigError, Refused

SHORTEST = 16
"""The least length of a token, in characters. `openssl rand -hex 32` makes one of
64."""
_LONGEST = 1024
# The sizes in bytes that munged accepts.
_LEAST, _MOST = 32, 1024
_MAKE_ONE = "`umask 077; openssl rand -hex 32 > FILE` makes one"
_GIVE_IT = "chmod 600, and chown to the daemon's user"


def read_secret(path: str, key: str) -> bytes:
    """Return the token in a file of one line that nobody else can read.

    `key` is the name of the setting, for errors. Raises ConfigError, as `read_private`.
    """
    text = read_private(path, key, _MAKE_ONE, _LONGEST + 2)
    token = text.strip()
    if not SHORTEST <= len(token) <= _LONGEST or not all(33 <= c <= 126 for c in token):
        raise ConfigError(
            f"{key}: {path}: has no token of {SHORTEST} to {_LONGEST} printable"
            " characters without spaces",
            _MAKE_ONE,
        )
    return token


def read_private(path: str, key: str, advice: str, most: int) -> bytes:
    """Return the content of a file that nobody else can read, at most `most` bytes.

    The file must belong to the daemon's user and have mode 0600 or 0400. Or it belongs
    to root and a group of this process may only read it, as Secrets are mounted in
    pods. `key` is the name of the setting. Raises ConfigError, with `advice` if there
    is no such file.
    """
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            _check_file(found, f"{key}: {path}", advice)
            return file.read(most)
    except PermissionError as error:
        # It exists, so a new one made in the same way would not be readable either.
        raise ConfigError(
            f"{key}: {path}: cannot be read: {error.strerror}", _GIVE_IT
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{key}: {path}: cannot be read: {error.strerror}", advice
        ) from error


def _check_file(found: os.stat_result, where: str, advice: str) -> None:
    ours = found.st_uid == os.geteuid()
    mode = stat.S_IMODE(found.st_mode)
    groups = {os.getegid(), *os.getgroups()}
    mounted = found.st_uid == 0 and mode & 0o037 == 0 and found.st_gid in groups
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{where}: is not a regular file", advice)
    if not ((ours and mode & 0o077 == 0) or mounted):
        raise ConfigError(
            f"{where}: others may read it, or it belongs to another user",
            _GIVE_IT,
        )


def read_munge_key(path: str) -> bytes:
    """Return the key in the file that the setting `munge_key` names. Raises Refused."""
    try:
        key = Path(path).read_bytes()
    except OSError as error:
        raise Refused(
            f"munge_key: {path} cannot be read: {error.strerror}",
            "copy the lead's key to a file that only the daemon's user can read",
        ) from error
    if not _LEAST <= len(key) <= _MOST:
        raise Refused(
            f"munge_key: {path} has {len(key)} bytes, and a munge key has {_LEAST} to"
            f" {_MOST}",
            "name the file that the lead's munged reads",
        )
    return key
