# SPDX-License-Identifier: MIT
"""Flux job ids as people see them: f58 (RFC 19)."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NewType

JobId = NewType("JobId", int)
"""A Flux job id: a 63-bit number (RFC 19 FLUID)."""

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_LIMIT = 2**63
# The longest form of an id has 19 characters; leading zeros are accepted, too.
_LONGEST = 64
EXAMPLE = "ƒ3i2dgyDq"
"""An id for texts that show what a job id looks like."""
# The word `job` in front is matched, too: "another job" replaces both.
_IN_TEXT = re.compile(f"(?:job )?ƒ([{_ALPHABET}]{{1,19}})")


def format_f58(job: int) -> str:
    """Return the id as `ƒ` and base58 digits."""
    digits = ""
    while job:
        job, digit = divmod(job, 58)
        digits = _ALPHABET[digit] + digits
    return f"ƒ{digits or _ALPHABET[0]}"


def without_jobs(text: str, kept: Container[int] = ()) -> str:
    """Return a text in which `another job` replaces the ids of jobs not in `kept`."""

    def shown(found: re.Match[str]) -> str:
        example = found[0].removeprefix("job ") == EXAMPLE
        shown_to_all = example or _base58(found) in kept
        return found[0] if shown_to_all else "another job"

    return _IN_TEXT.sub(shown, text) if "ƒ" in text else text


def parse_jobid(text: str) -> JobId:
    """Return the job id for f58 (`ƒ…` or `f…`), decimal, hex, dotted hex or KVS text.

    Raises ValueError.
    """
    word = text.strip() if len(text) <= _LONGEST else ""
    for form, read in _FORMS:
        match = form.fullmatch(word)
        if match:
            job = read(match)
            if job < _LIMIT:
                return JobId(job)
    shown = repr(text) if word else f"{text[:_LONGEST]!r}..."
    raise ValueError(f"not a job id: {shown} (such as {EXAMPLE})")


def _base58(match: re.Match[str]) -> int:
    value = 0
    for letter in match[1]:
        value = value * 58 + _VALUES[letter]
    return value


def _dotted(match: re.Match[str]) -> int:
    value = 0
    for group in match.groups():
        value = value << 16 | int(group, 16)
    return value


_FORMS = (
    (re.compile(f"[ƒf]([{_ALPHABET}]+)"), _base58),
    (re.compile(r"\d+", re.ASCII), lambda match: int(match[0])),
    (re.compile("0[xX]([0-9a-fA-F]+)"), lambda match: int(match[1], 16)),
    (re.compile(r"(?:job\.)?" + r"\.".join(["([0-9a-fA-F]{1,4})"] * 4)), _dotted),
)
