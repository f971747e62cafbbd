# SPDX-License-Identifier: MIT
"""Checks whether users other than the owner can reach a path, and lets them pass."""

from __future__ import annotations

import os
import stat
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
