# SPDX-License-Identifier: MIT
"""RFC 18 events, from which the log, the record and the explanation are made."""

from __future__ import annotations

from typing import Any

import msgspec

LONGEST_NOTE = 1000
"""The longest free text in an event, in characters: a note, or a provider's message."""

PROBLEMS = frozenset(
    {"exception", "lost", "overdue", "outlived", "quarantine", "reclaimed"}
)
"""The names of events of a burst that say that something went wrong."""


def cut(text: str, longest: int = LONGEST_NOTE) -> str:
    """Return the text; if it is too long, an ellipsis replaces its end."""
    return (
        text
        if len(text) <= longest
        else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )


class Event(msgspec.Struct, frozen=True):
    """One event: its time (seconds since the epoch), its name and its details.

    Source: RFC 18, one JSON object a line with `timestamp`, `name`, `context`.
    """

    timestamp: float
    name: str
    context: dict[str, Any] = {}

    def line(self) -> str:
        """Return the event as one RFC 18 line, without the newline."""
        return msgspec.json.encode(self).decode()
