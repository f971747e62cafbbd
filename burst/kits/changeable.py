# SPDX-License-Identifier: MIT
"""Whether others than root and one user can change what is at a path."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_MOST_LINKS = 40
"""As path_resolution(7) has it."""


def first_changeable(path: Path, owner: int, root: Path = Path("/")) -> str:
    """Return the first part of an absolute path that others can change, or empty.

    Others are all but root and the user with the UID `owner`. They can if it is theirs,
    or if its mode lets them write: in a directory that is not sticky they can put
    something else in its place. A group counts as others if it has members beside these
    two. What is above `root` is not looked at. Raises OSError for what cannot be looked
    at, but for what does not exist.
    """
    for part in _walk(path):
        if part.is_relative_to(root):
            try:
                found = part.lstat()
            except FileNotFoundError:
                return ""
            if _is_changeable(found, owner):
                return str(part)
    return ""


def _walk(path: Path) -> Iterator[Path]:
    """Yield each directory, link and file on the way to what a path names."""
    rest, links, at = list(reversed(path.parts)), 0, Path("/")
    while rest:
        name = rest.pop()
        at = at.parent if name == ".." else at / name
        yield at
        if at.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            rest += reversed(at.readlink().parts)
            at = at.parent


def _is_changeable(found: os.stat_result, owner: int) -> bool:
    mode = found.st_mode
    if found.st_uid not in {0, owner}:
        return True
    if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return False
    by_group = mode & stat.S_IWGRP and _has_others(found.st_gid, owner)
    return bool(mode & stat.S_IWOTH or by_group)


@cache
def _has_others(group: int, owner: int) -> bool:
    """Tell whether users beside root and one are in a group, as far as is known."""
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return True
    members |= {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return bool(members - _names(0) - _names(owner))


def _names(userid: int) -> set[str]:
    return {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == userid}
