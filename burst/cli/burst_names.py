# SPDX-License-Identifier: MIT
"""Ids of bursts as typed by a person: whole, a prefix of the id, or `last`."""

from __future__ import annotations

import re
from collections.abc import Callable

from burst.cli.listing import Row
from burst.errors import BurstError

LAST = "last"
"""Typed in place of an id: the burst that was made last."""
_WHOLE = re.compile(r".+-[0-9a-f]{6}")


def find_burst(typed: str, look: Callable[[], Row], also: str = "") -> str:
    """Return the id of the burst that a person typed.

    `look` returns what `burst status` shows, with the bursts in the order in which they
    were made; it is not called for a whole id, which may be that of a burst whose
    record cannot be read. A prefix that live bursts have is not one of ended bursts.
    Raises BurstError if several ids begin with the text, if none does, and for `last`
    if there is no burst. `also` is added to the error if none does.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    rows = look()["bursts"]
    if typed == LAST:
        if not rows:
            raise BurstError("there is no burst", "burst status -a lists ended ones")
        return str(rows[-1]["id"])
    ids = [str(row["id"]) for row in rows]
    live = [str(row["id"]) for row in rows if row["state"] != "inactive"]
    found = _beginning_with(typed, live) or _beginning_with(typed, ids)
    if not found:
        names = ", ".join(sorted(live)) or "none"
        raise BurstError(f"there is no burst {typed!r}{also}", f"live bursts: {names}")
    if len(found) > 1:
        raise BurstError(
            f"{typed} matches {len(found)} bursts: {', '.join(found)}",
            "type more of the id",
        )
    return found[0]


def _beginning_with(typed: str, ids: list[str]) -> list[str]:
    """Return the ids that begin with the text, which is not empty."""
    return sorted(each for each in ids if typed and each.startswith(typed))
