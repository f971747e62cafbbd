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
    """Return the id of the burst that is meant; what is typed where none is.

    `look` returns what `burst status` shows, and is called only for what is no whole
    id. Raises BurstError where several begin so, and for `last` where there is none.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    rows = look()["bursts"]
    if typed == LAST:
        if not rows:
            raise BurstError("there is no burst", "burst status -a lists ended ones")
        return str(max(rows, key=lambda row: (row["t_submit"], row["id"]))["id"])
    found = sorted(row["id"] for row in rows if row["id"].startswith(typed))
    if len(found) > 1:
        raise BurstError(
            f"{typed} is the beginning of {len(found)} bursts: {', '.join(found)}",
            "type more of the id",
        )
    return found[0] if found else typed
