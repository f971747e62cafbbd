# SPDX-License-Identifier: MIT
"""Shortens texts of other programs for our messages."""

from __future__ import annotations


def shorten(words: object, most: int = 300) -> str:
    """Return the text as one line, cut after `most` characters."""
    text = " ".join(str(words).split())
    return text if len(text) <= most else f"{text[:most]}…"
