# SPDX-License-Identifier: MIT
"""The command line by which other programs (brokers, systemd, jobs) start burst."""

from __future__ import annotations

import sys


def own_command(*words: str) -> list[str]:
    """Return the command `burst WORDS...` of this installation.

    It starts the interpreter, as the caller's PATH need not include our bin directory.
    It has -P (python(1)), as the caller's working directory is not known: with -m
    alone, Python would import a directory `burst` found there, such as a checkout of
    another version, or one in a place where other users may write.
    """
    return [sys.executable, "-P", "-m", "burst", *words]
