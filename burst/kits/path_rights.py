# SPDX-License-Identifier: MIT
"""Checks whether other users can reach or change what is at a path; lets them pass."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def let_pass(directory: int | Path) -> None:
    """Let all users pass through a directory, if it is this user's. Raises OSError.

    They still cannot list it. `directory` is a path or an open descriptor.
    """
    found = os.stat(directory)
    if found.st_uid == os.geteuid():
        mode = stat.S_IMODE(found.st_mode) | stat.S_IXGRP | stat.S_IXOTH
        os.chmod(directory, mode)


def make_open_directory(directory: Path) -> list[Path]:
    """Make a directory, and its parents, which all users can enter and list.

    The umask has no effect; directories that exist are not changed. Returns the
    directories that were made, from the top. Raises OSError.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    made.reverse()
    for path in made:
        path.mkdir()
        # Another user who owns a directory above may have put a link there.
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchmod(opened, 0o755)
        finally:
            os.close(opened)
    return made


def first_closed(path: Path, root: Path = Path("/")) -> str:
    """Return the first part of a path that other users cannot enter or read, or "".

    Others must be able to pass through its directories, and to read a file at its end.
    Parts above `root` are not checked. If the path has symbolic links, both the path
    itself and the resolved path are checked.
    """
    for each in dict.fromkeys((path, path.resolve())):
        for part in (*reversed(each.parents), each):
            if root in part.parents or part == root:
                try:
                    found = part.stat().st_mode
                except OSError:
                    return str(part)
                needed = stat.S_IXOTH if stat.S_ISDIR(found) else stat.S_IROTH
                if not found & needed:
                    return str(part)
    return ""


_MOST_LINKS = 40
"""The limit of path_resolution(7)."""


def first_changeable(path: Path, owner: int, root: Path = Path("/")) -> str:
    """Return the first part of an absolute path that others can change, or "".

    Others are all users but root and the user with the UID `owner`. They can change a
    part if they own it, or if its mode lets them write: in a directory without the
    sticky bit they can replace its entries. A group counts as others if it has members
    besides these two users. Parts above `root` are not checked. Raises OSError if a
    part cannot be examined; a part that does not exist ends the check.
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
    """Yield each directory, link and file on the way to the target of a path."""
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
    """Tell whether a group has members besides root and `owner`, as far as is known."""
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return True
    members |= {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return bool(members - _names(0) - _names(owner))


def _names(userid: int) -> set[str]:
    return {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid == userid}
