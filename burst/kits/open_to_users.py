# SPDX-License-Identifier: MIT
"""Whether users other than the owner reach or change a path; how they are let in."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path


def let_pass(directory: int | Path) -> None:
    """Let all users pass through a directory, if it is this user's. Raises OSError.

    They cannot list it. It is given as a path or as an open descriptor.
    """
    found = os.stat(directory)
    if found.st_uid == os.geteuid():
        mode = stat.S_IMODE(found.st_mode) | stat.S_IXGRP | stat.S_IXOTH
        os.chmod(directory, mode)


def make_open_directory(directory: Path) -> list[Path]:
    """Make a directory and those above it that all users can enter and list.

    So they can, whatever the umask is; one that exists stays as it is. Returns those
    that were made, from the top. Raises OSError.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    made.reverse()
    for path in made:
        path.mkdir()
        path.chmod(0o755)
    return made


def first_closed(path: Path, root: Path = Path("/")) -> str:
    """Return the first part of a path that other users cannot enter or read.

    Empty if they can. Its directories have to let others pass, and a file at its end
    has to let them read. What is above `root` is not looked at. A symbolic link is
    followed, and the path that it is on is looked at too.
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


def first_changeable(path: Path, owner: int, root: Path = Path("/")) -> str:
    """Return the first part of a path that others than root and a user can change.

    Empty if there is none. So they can if it is theirs, or if its mode lets them write,
    as a directory's does where it is not sticky: then they can put another file there.
    The group of root and the user's own group do not count as others. What is above
    `root`, and what does not exist, is not looked at. A symbolic link is followed, and
    the path that it is on is looked at too. `owner` is the UID of the user.
    """
    groups = {0, *_own_group(owner)}
    for each in dict.fromkeys((path, path.resolve())):
        for part in (*reversed(each.parents), each):
            if root in part.parents or part == root:
                try:
                    found = part.stat()
                except OSError:
                    continue
                if _is_changeable(found, owner, groups):
                    return str(part)
    return ""


def _is_changeable(found: os.stat_result, owner: int, groups: set[int]) -> bool:
    if found.st_uid not in {0, owner}:
        return True
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return False
    others = stat.S_IWOTH if found.st_gid in groups else stat.S_IWOTH | stat.S_IWGRP
    return bool(found.st_mode & others)


def _own_group(userid: int) -> set[int]:
    try:
        return {pwd.getpwuid(userid).pw_gid}
    except KeyError:
        return set()
