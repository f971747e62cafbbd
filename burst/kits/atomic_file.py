# SPDX-License-Identifier: MIT
"""Writes a file completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The errors of a write for which there is no space, no quota, or a limit of size."""


def write_atomically(  # noqa: PLR0913 - those with a name have a usual value
    path: Path,
    content: str | bytes,
    *,
    private: bool = False,
    mode: int | None = None,
    replace: bool = True,
    sync: bool = True,
    like: os.stat_result | None = None,
) -> None:
    """Write the file so that readers see the old content or the new one, never a part.

    The content goes to a hidden file in the same directory and to the disk (fsync)
    before it gets the name. An error leaves no hidden file; a SIGKILL may leave one.
    `private`: the mode is 0600, so at no moment can another user read the file. `mode`:
    the mode is this one, whatever the umask is. `like`: owner, group and mode are those
    of that file. Otherwise they are those of any new file. Without `replace`, raises
    FileExistsError if `path` exists. Without `sync` there is no fsync, which may take
    seconds on a busy disk; a crash of the machine may then leave an empty file. Raises
    OSError, which names a file even if write(2) or fsync(2) fails, as on a full disk.
    """
    if not path.name:  # such as of an empty text
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    first = 0o600 if private or like else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(part, flags, first)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if like:
                _make_like(descriptor, like)
            if mode is not None:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        if replace:
            part.replace(path)
        else:
            # Unlike rename(2), link(2) fails if the name exists.
            os.link(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def advice_on(error: OSError, otherwise: str) -> str:
    """Return what to do about a file that could not be written."""
    if error.errno in NO_ROOM:
        return "make room there, then run it again"
    return otherwise


def _make_like(descriptor: int, other: os.stat_result) -> None:
    """Give a new file the owner, group and mode of another one. Raises OSError."""
    found = os.fstat(descriptor)
    # Only root may change the owner; other users do not need to.
    if (found.st_uid, found.st_gid) != (other.st_uid, other.st_gid):
        os.fchown(descriptor, other.st_uid, other.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(other.st_mode))
