# SPDX-License-Identifier: MIT
"""Ids of bursts as typed by a person: whole, a prefix that only one has, or `last`."""

from __future__ import annotations

import re
from collections.abc import Callable

from burst.cli.listing import Row
from burst.errors import BurstError

LAST = "last"
"""Typed in place of an id: the burst that was made last."""
_WHOLE = re.compile(r".+-[0-9a-f]{6}")


def find_burst(typed: str, look: Callable[[], Row]) -> str:
    """Return the id of the burst that a person typed; the text itself if none matches.

    `look` returns what `burst status` shows, with the bursts in the order in which they
    were made; it is not called for a whole id. Raises
    BurstError if several ids begin with the text, and for `last` if there is no burst.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    rows = look()["bursts"]
    if typed == LAST:
        if not rows:
            raise BurstError("there is no burst", "burst status -a lists ended ones")
        return str(rows[-1]["id"])
    found = sorted(row["id"] for row in rows if row["id"].startswith(typed))
    if len(found) > 1:
        raise BurstError(
            f"{typed} matches {len(found)} bursts: {', '.join(found)}",
            "type more of the id",
        )
    return found[0] if found else typed
