# SPDX-License-Identifier: MIT
"""RFC 18 events: the log, the record and the explanation are this one text."""

from __future__ import annotations

from typing import Any

import msgspec


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
