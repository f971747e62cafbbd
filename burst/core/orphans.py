# SPDX-License-Identifier: MIT
"""Orphans: what has our owner tag and is in no record of a live burst.

What `burst gc` lists is as plain objects, ready for JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from burst.core.provider_health import Outcome
from burst.core.records import Records
from burst.core.world import LastCall, World
from burst.model.burst import BurstId
from burst.model.ranks import format_hostlist
from burst.provider import BurstStatus

# Something is an orphan once it was seen without a record for this long, in seconds:
# what was just deleted stays in listings for a while, and listings are late.
SURE_AFTER = 60.0


class Orphan(msgspec.Struct, frozen=True):
    """A burst that a provider shows and no record of a live burst explains."""

    provider: str
    burst: BurstId
    why: str
    hosts: tuple[str, ...]
    """Its followers, as far as the provider knows them."""
    isolated: bool = False
    """Whether it is an instance of its own: what runs in it cannot be seen here."""


def find_orphans(records: Records, world: World) -> tuple[Orphan, ...]:
    """Return what the providers show and no record of a live burst explains.

    An unreadable record explains what has its id.
    """
    return tuple(
        Orphan(
            name,
            status.burst_id,
            why,
            _hosts(status),
            isolated=status.instance is not None,
        )
        for name, view in world.providers.items()
        for status in view.statuses.values()
        if (why := _unexplained(records, name, status.burst_id))
    )


def may_be_deleted(orphan: Orphan, world: World) -> bool:
    """Tell whether nothing is known to run on it: it may be deleted.

    False where the lead cannot be read or its followers are not known.
    """
    if world.lead is None or not orphan.hosts or orphan.isolated:
        return False
    return not _ranks(orphan, world) & world.lead.allocated


def may_get_jobs(orphan: Orphan, world: World) -> bool:
    """Tell whether the lead may start jobs on it at any moment."""
    return world.lead is not None and bool(_ranks(orphan, world) & world.lead.online)


def _ranks(orphan: Orphan, world: World) -> set[int]:
    ranks = {host: rank for rank, host in enumerate(world.identity.hosts)}
    return {ranks[host] for host in orphan.hosts if host in ranks}


def _hosts(status: BurstStatus) -> tuple[str, ...]:
    return tuple(follower.host for follower in status.followers)


def _unexplained(records: Records, provider: str, burst_id: BurstId) -> str:
    burst = records.bursts.get(burst_id)
    if f"burst/{burst_id}" in records.unreadable:
        return ""
    if burst is None:
        return "no record of it"
    if burst.live:
        # Whichever provider made it: two tables of one type may show the same bursts.
        return ""
    if burst.lease.provider != provider:
        return f"its record names provider {burst.lease.provider}"
    return "its record says that nothing of it was left"


def orphan_row(orphan: Orphan) -> dict[str, Any]:
    """Return one orphan."""
    return {
        "id": orphan.burst,
        "provider": orphan.provider,
        "hosts": format_hostlist(orphan.hosts),
        "why": orphan.why,
    }


def unreadable_rows(records: Records, world: World) -> list[dict[str, Any]]:
    """Return the bursts whose record cannot be read, as `orphan_row` does orphans."""
    names = sorted(
        BurstId(key.removeprefix("burst/"))
        for key in records.unreadable
        if key.startswith("burst/")
    )
    rows: list[dict[str, Any]] = []
    for name in names:
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
    """Return how far the deletion of an orphan is."""
    return {
        "id": burst,
        "provider": provider,
        "gone": call.outcome is Outcome.NOT_FOUND,
        "attempts": call.attempts,
        "note": call.note,
    }
