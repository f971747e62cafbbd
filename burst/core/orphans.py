# SPDX-License-Identifier: MIT
"""Orphans: resources with the owner tag that no record of a live burst explains.

The rows for `burst gc` are plain objects, ready for JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from burst.core.provider_health import Outcome
from burst.core.records import Records, unread_bursts
from burst.core.world import LastCall, World
from burst.model.burst import BurstId
from burst.model.ranks import format_hostlist
from burst.provider import BurstStatus

# A burst counts as an orphan once it was seen without a record for this many seconds:
# deleted resources stay in listings for a while, and listings are late.
SURE_AFTER = 60.0


class Orphan(msgspec.Struct, frozen=True):
    """A burst that a provider shows and no record of a live burst explains."""

    provider: str
    burst: BurstId
    why: str
    hosts: tuple[str, ...]
    """The hosts of its followers, as far as the provider knows them."""


def find_orphans(records: Records, world: World, now: float) -> tuple[Orphan, ...]:
    """Return the bursts that providers show and no record of a live burst explains.

    An unreadable record explains the burst with its id.
    """
    return tuple(
        Orphan(name, status.burst_id, why, _hosts(status))
        for name, view in world.providers.items()
        for status in view.statuses.values()
        if (why := _unexplained(records, name, status.burst_id, view.read_at, now))
    )


def _hosts(status: BurstStatus) -> tuple[str, ...]:
    return tuple(follower.host for follower in status.followers)


def _unexplained(
    records: Records, provider: str, burst_id: BurstId, read_at: float, now: float
) -> str:
    burst = records.bursts.get(burst_id)
    if f"burst/{burst_id}" in records.unreadable:
        return ""
    if burst is None:
        return "burst has no record of it"
    if burst.live:
        # Whatever provider made it: two tables of one type may show the same bursts.
        return ""
    if burst.lease.provider != provider:
        return f"its record names provider {burst.lease.provider}"
    # What was read before the end of its deletion shows nothing that is left of it. An
    # end that is yet to come is of a clock that was set back.
    stale = read_at <= burst.since <= now
    return "" if stale else "its record says that it was deleted"


def orphan_row(orphan: Orphan) -> dict[str, Any]:
    """Return an orphan as a row."""
    return {
        "id": orphan.burst,
        "provider": orphan.provider,
        "hosts": format_hostlist(orphan.hosts),
        "why": orphan.why,
    }


def unreadable_rows(records: Records, world: World) -> list[dict[str, Any]]:
    """Return the bursts whose record cannot be read, as rows like `orphan_row`."""
    rows: list[dict[str, Any]] = []
    for name in sorted(unread_bursts(records)):
        shown = [p for p, view in world.providers.items() if name in view.statuses]
        status = world.providers[shown[0]].statuses[name] if shown else None
        hosts = [f.host for f in status.followers] if status else []
        rows.append(
            {
                "id": name,
                "provider": ",".join(shown),
                "hosts": format_hostlist(hosts),
                "why": "its record cannot be read",
            }
        )
    return rows


def reap_row(provider: str, burst: BurstId, call: LastCall) -> dict[str, Any]:
    """Return the progress of an orphan's deletion as a row."""
    return {
        "id": burst,
        "provider": provider,
        "gone": call.outcome is Outcome.NOT_FOUND,
        "attempts": call.attempts,
        "note": call.note,
    }
