# SPDX-License-Identifier: MIT
"""What an examination found: how bad it is, what it is, what to do about it."""

from __future__ import annotations

import enum

import msgspec


class Level(enum.Enum):
    """How bad a finding is. Only WRONG keeps bursts from working."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. No field ever holds a secret."""

    level: Level
    what: str
    """What was found, with the names and numbers that tell it from others."""
    advice: str = ""
    """What the reader can do; empty only where nothing is to be done."""
    about: str = ""
    """The part that it is about. The caller of `examine` fills it in."""


def ok(what: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(Level.OK, what)


def note(what: str, advice: str = "") -> Finding:
    """Return something to know, which does not keep bursts from working."""
    return Finding(Level.NOTE, what, advice)


def wrong(what: str, advice: str) -> Finding:
    """Return something that keeps bursts from working."""
    return Finding(Level.WRONG, what, advice)
