# SPDX-License-Identifier: MIT
"""Texts of others in our messages."""

from __future__ import annotations


def shorten(words: object, most: int = 300) -> str:
    """Return the text as one line, cut after so many characters."""
    text = " ".join(str(words).split())
    return text if len(text) <= most else f"{text[:most]}…"
