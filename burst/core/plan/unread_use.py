# SPDX-License-Identifier: MIT
"""What bursts use of the limits whose records cannot be read."""

from __future__ import annotations

from collections.abc import Mapping

from burst.core.plan.limits import FurtherUse
from burst.core.records import RecordsView, unread_bursts
from burst.core.world import World
from burst.core.worth.ledger import Entry
from burst.model.burst import BurstId


def unread_use(records: RecordsView, world: World) -> Mapping[BurstId, FurtherUse]:
    """Return what each burst uses whose record cannot be read, as far as is known.

    Its nodes are paid for until a person has it taken down. The entry of its money
    tells their number, and for whom they are. A burst without an entry has ended, or
    that cannot be read either; then the followers count that a provider shows.
    """
    return {
        name: use
        for name in unread_bursts(records)
        if (use := _use_of(name, records, world)) is not None
    }


def unread_entries(records: RecordsView) -> list[Entry]:
    """Return the entries of these bursts, as far as they can be read."""
    entries = map(records.entries.get, unread_bursts(records))
    return [entry for entry in entries if entry is not None]


def _use_of(name: BurstId, records: RecordsView, world: World) -> FurtherUse | None:
    entry = records.entries.get(name)
    if entry is not None:
        users = {payer.userid for payer in entry.payers if payer.userid is not None}
        return FurtherUse(
            offer=f"{entry.provider}/{entry.offer}",
            nodes=entry.nodes,
            bursts=1,
            charged=dict.fromkeys(users, entry.nodes),
        )
    for provider, view in world.providers.items():
        if name in view.statuses:
            nodes = len(view.statuses[name].followers)
            return FurtherUse(offer=f"{provider}/", nodes=nodes, bursts=1)
    return None
