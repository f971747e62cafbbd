# SPDX-License-Identifier: MIT
"""A finding of a check: how bad it is, what it is, and what to do about it."""

from __future__ import annotations

import enum

import msgspec


class Level(enum.Enum):
    """How bad a finding is. Only WRONG keeps bursts from working."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check. No field ever holds a secret."""

    level: Level
    what: str
    """What was found, with the names and numbers that identify it."""
    advice: str = ""
    """What the reader can do; empty only if nothing needs to be done."""
    about: str = ""
    """The part that it is about. The caller of `examine` fills it in."""


def ok(what: str) -> Finding:
    """Return the finding that something is as it should be."""
    return Finding(Level.OK, what)


def note(what: str, advice: str = "") -> Finding:
    """Return a finding that does not keep bursts from working."""
    return Finding(Level.NOTE, what, advice)


def wrong(what: str, advice: str) -> Finding:
    """Return a finding that keeps bursts from working."""
    return Finding(Level.WRONG, what, advice)
