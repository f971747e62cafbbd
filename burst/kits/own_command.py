# SPDX-License-Identifier: MIT
"""The command line by which others start burst: brokers, systemd, jobs."""

from __future__ import annotations

import sys


def own_command(*words: str) -> list[str]:
    """Return the command `burst WORDS...`, of this very installation.

    By the interpreter, as their environment need not have our bin on its PATH. With -P
    (python(1)), as they run it in a directory that is not known: with -m alone a
    directory `burst` there, such as in a checkout of another version, or in a place
    where others may write, would be imported instead.
    """
    return [sys.executable, "-P", "-m", "burst", *words]
