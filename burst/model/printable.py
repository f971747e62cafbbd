# SPDX-License-Identifier: MIT
"""Makes texts that others wrote safe to show on a terminal."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return a text in one line, without characters that control a terminal.

    White space becomes a space; other characters that cannot be printed become U+FFFD.
    """
    return "".join(map(_shown, str(text)))


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
