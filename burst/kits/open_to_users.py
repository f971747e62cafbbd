# SPDX-License-Identifier: MIT
"""Whether users other than the owner reach a path, and how they are let through."""

from __future__ import annotations

import os
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
