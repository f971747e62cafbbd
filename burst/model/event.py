# SPDX-License-Identifier: MIT
"""RFC 18 events: the log, the record and the explanation are this one text."""

from __future__ import annotations

from typing import Any

import msgspec

LONGEST_NOTE = 1000
"""Characters of a free text in an event: a note, or what a provider says."""


def cut(text: str, longest: int = LONGEST_NOTE) -> str:
    """Return the text, its end replaced by an ellipsis where it is too long."""
    return (
        text
        if len(text) <= longest
        else text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )


class Event(msgspec.Struct, frozen=True):
    """One thing that happened: when (seconds since the epoch), its name, its details.

    Source: RFC 18, one JSON object a line with `timestamp`, `name`, `context`.
    """

    timestamp: float
    name: str
    context: dict[str, Any] = {}

    def line(self) -> str:
        """Return the event as one RFC 18 line, without the newline."""
        return msgspec.json.encode(self).decode()
