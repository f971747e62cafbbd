# SPDX-License-Identifier: MIT
"""Flux job ids as people see them: f58 (RFC 19)."""

from __future__ import annotations

from typing import NewType

JobId = NewType("JobId", int)
"""A Flux job id: a 63-bit number (RFC 19 FLUID)."""

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}


def format_f58(job: int) -> str:
    """Return the id as `ƒ` and base58 digits."""
    digits = ""
    while job:
        job, digit = divmod(job, 58)
        digits = _ALPHABET[digit] + digits
    return f"ƒ{digits or _ALPHABET[0]}"


def parse_jobid(text: str) -> JobId:
    """Return the id of f58 (`ƒ…` or `f…`), decimal, hex or dotted hex text.

    Raises ValueError.
    """
    word = text.strip()
    try:
        if word[:1] in ("ƒ", "f") and "." not in word:
            return JobId(_base58(word[1:]))
        if "." in word:
            return JobId(int(word.replace(".", ""), 16))
        return JobId(int(word, 0))
    except (KeyError, ValueError):
        raise ValueError(f"not a job id: {text!r} (such as ƒ3i2dgyDq)") from None


def _base58(digits: str) -> int:
    if not digits:
        raise ValueError(digits)
    value = 0
    for letter in digits:
        value = value * 58 + _VALUES[letter]
    return value
