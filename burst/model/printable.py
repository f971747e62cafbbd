# SPDX-License-Identifier: MIT
"""Texts that others wrote, as they can be shown."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return a text in one line, without what a terminal may take for a command.

    A control character becomes a space if it is one, else a sign for what is not shown.
    """
    return "".join(map(_shown, str(text)))


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
