# SPDX-License-Identifier: MIT
"""Removes records that are too large for the store from the result of a tick.

Records are bounded where they are made. If one is still too large for the store, its
burst is quarantined, and the rest of the tick goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from burst.core.actions import Action, ProvisionBurst, ReapBurst, UndrainBurst
from burst.core.records import Records
from burst.core.tick import TickResult
from burst.model.burst import BurstId
from burst.model.event import Event

_K = TypeVar("_K")
_V = TypeVar("_V")
_OF_ACCOUNTS = ("entry", "ledger", "settled")


def without_oversized(
    decisions: TickResult, before: Records, keys: Collection[str], now: float
) -> TickResult:
    """Return the result, with these records unchanged from what the store has.

    A burst that is on record is quarantined, in memory only; a new one is not made.
    """
    after = decisions.records
    names = {BurstId(key.split("/")[1]) for key in keys if _is_of_burst(key)}
    why = f"its record would be too large for the store: {', '.join(sorted(keys))}"
    bursts = dict(_as_before(after.bursts, before.bursts, names))
    for name in names & bursts.keys():
        # No event: the record with it could not be stored either.
        bursts[name] = msgspec.structs.replace(bursts[name], quarantined=why)
    health = {name for name in after.health if f"provider/{name}" in keys}
    outputs = {name for name in after.outputs if f"output/{name}" in keys}
    times = {name for name in after.times if f"times/{name}" in keys}
    records = msgspec.structs.replace(
        _accounts(after, before, keys, names),
        bursts=bursts,
        health=_as_before(after.health, before.health, health),
        outputs=_as_before(after.outputs, before.outputs, outputs),
        times=_as_before(after.times, before.times, times),
    )
    quarantined = Event(now, "quarantine", {"note": why})
    return msgspec.structs.replace(
        decisions,
        records=records,
        events=(
            *((name, event) for name, event in decisions.events if name not in names),
            *((name, quarantined) for name in sorted(names)),
        ),
        actions=tuple(a for a in decisions.actions if _burst_of(a) not in names),
        refusal_cache=None,
    )


def _accounts(
    after: Records, before: Records, keys: Collection[str], names: Collection[BurstId]
) -> Records:
    """Return the records without entries of bursts that are not made.

    The cost of a burst is settled together with its end. If either cannot be stored,
    nothing is settled; the next tick tries again.
    """
    unsettled = any(name in after.settled for name in names)
    if unsettled or any(key.split("/")[0] in _OF_ACCOUNTS for key in keys):
        return msgspec.structs.replace(
            after,
            entries=before.entries,
            periods=before.periods,
            settled=before.settled,
        )
    entries = _as_before(after.entries, before.entries, names)
    return msgspec.structs.replace(after, entries=entries)


def _is_of_burst(key: str) -> bool:
    return key.split("/", maxsplit=1)[0] in ("burst", "job")


def _burst_of(action: Action) -> BurstId | None:
    return (
        action.burst
        if isinstance(action, ProvisionBurst | ReapBurst | UndrainBurst)
        else None
    )


def _as_before(
    after: Mapping[_K, _V], before: Mapping[_K, _V], names: Collection[_K]
) -> Mapping[_K, _V]:
    if not names:
        return after
    kept = {name: value for name, value in after.items() if name not in names}
    return {**kept, **{name: before[name] for name in names if name in before}}
