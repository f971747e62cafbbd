# SPDX-License-Identifier: MIT
"""A directory of a provider's own, where a daemon after this one finds what it left.

    DIR/OWNER.PROVIDER/

What is in there decides what gets a signal or is deleted, so nobody else may write it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from burst.errors import Refused

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\Z")


def is_name(text: str) -> bool:
    """Tell whether the text is safe as the name of a directory or file of ours."""
    return bool(_NAME.match(text))


def default_base() -> Path:
    """Return `/tmp/burst-UID`.

    Short, as a unix socket's path must be, and the same whoever starts the daemon and
    how, which XDG_RUNTIME_DIR is not.
    """
    return Path(f"/tmp/burst-{os.geteuid()}")  # noqa: S108  it is checked before use


class PrivateDirectory:
    """The directory of one owner's provider."""

    def __init__(self, base: Path, owner: str, name: str) -> None:
        for word in (owner, name):
            if not is_name(word):
                raise Refused(f"{word!r} cannot be part of a directory's name")
        self._base = base
        # A dot is in neither, so no two pairs share a directory.
        self.path = base / f"{owner}.{name}"

    def open(self) -> None:
        """Make the directory, for us only. Raises Refused."""
        try:
            self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise Refused(
                f"{self.path}: cannot be made: {error.strerror}",
                "set dir to a directory that you may write",
            ) from error
        self.check()

    def check(self) -> None:
        """Raise Refused if the directory is there and others could have written it."""
        us = os.geteuid()
        try:
            base = self._base.stat()
            shared = base.st_mode & 0o022 and not base.st_mode & stat.S_ISVTX
            _refuse(self._base, shared or base.st_uid not in (0, us))
            own = self.path.lstat()
            _refuse(self.path, own.st_mode & 0o077 or own.st_uid != us)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Refused(
                f"{self.path}: cannot be used: {error.strerror}",
                "set dir to a directory that you may write",
            ) from error

    def names(self) -> list[str]:
        """Return the names in it that are like ours; none if it is not there."""
        try:
            return sorted(filter(is_name, os.listdir(self.path)))
        except FileNotFoundError:
            return []

    def close(self) -> None:
        """Remove the directory if nothing is in it."""
        try:
            self.path.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise


def load(path: Path, kind: type[_T]) -> _T | None:
    """Return what the file holds as JSON; None if it is not there, or is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def store(path: Path, content: bytes) -> None:
    """Write the file whole or not at all, readable by us only."""
    part = path.with_name(f".{path.name}")
    part.unlink(missing_ok=True)
    with open(part, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as f:
        f.write(content)
    part.replace(path)


def _refuse(path: Path, wrong: int) -> None:
    if wrong:
        raise Refused(
            f"{path}: others may write there, or could before",
            "remove it, or set dir to a directory of your own",
        )
