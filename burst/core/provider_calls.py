# SPDX-License-Identifier: MIT
"""Decides when a provider is called (again) for a burst, and what takes too long."""

from __future__ import annotations

from burst.core.observation import is_in_reach
from burst.core.provider_health import ENDS_BURST, Outcome, Verb
from burst.core.records import Transaction
from burst.core.world import LastCall, World, repeat_at
from burst.model.burst import Burst

_LEASE_GRACE_S = 300.0
"""How long after the lease something may be left, in seconds: a provider that ends the
burst by itself needs a moment, too."""


def may_call(tx: Transaction, burst: Burst, verb: Verb) -> bool:
    """Tell whether this method of the provider should be called (again) now."""
    call = tx.world.calls.get(burst.id)
    if not is_in_reach(burst.lease, tx.world):
        return False
    if call is None or (call.verb is not verb and call.outcome is not Outcome.PENDING):
        return True
    if verb is Verb.PROVISION and call.outcome is Outcome.OK:
        return False
    return tx.now >= repeat_at(call)


def refused_call(burst: Burst, world: World) -> LastCall | None:
    """Return the last call if it was a `provision` that is not made again."""
    call = world.calls.get(burst.id)
    if call is None or call.verb is not Verb.PROVISION:
        return None
    return call if call.outcome in ENDS_BURST else None


def is_gone(burst: Burst, world: World) -> bool:
    """Tell whether the provider has confirmed that nothing of the burst is left.

    Of one whose place is gone for good a person says so (`burst down --force`).
    """
    call = world.calls.get(burst.id)
    gone = Verb.REAP, Outcome.NOT_FOUND
    return call is not None and (call.verb, call.outcome) == gone


def may_resize(tx: Transaction, burst: Burst) -> bool:
    """Tell whether `resize` should be called (again) now, for a burst that resizes.

    For a growth it is called until it returns, for a shrink until the shrink has ended.
    """
    call = tx.world.calls.get(burst.id)
    if is_resize_taken(burst, tx.world) and burst.coming:
        return False
    if call is not None and call.verb is Verb.RESIZE and not _is_this(burst, tx.world):
        # The last call was for another size.
        taken = call.outcome is not Outcome.PENDING
        return taken and is_in_reach(burst.lease, tx.world)
    return may_call(tx, burst, Verb.RESIZE)


def is_resize_taken(burst: Burst, world: World) -> bool:
    """Tell whether a call of `resize` for the burst's new size has returned."""
    call = world.calls.get(burst.id)
    return call is not None and call.taken_at > 0 and _is_this(burst, world)


def report_overdue(
    tx: Transaction, burst: Burst, limit: float, note: str, since: float = 0.0
) -> None:
    """Record, once in each period of `limit`, that something takes longer than that.

    `since` is when it began; by default, when the burst entered its state.
    """
    reported = [event.timestamp for event in burst.events if event.name == "overdue"]
    last = max([since or burst.since, *reported])
    if tx.now - last > limit:
        tx.record(burst.id, "overdue", {"note": note})


def is_overdue(burst: Burst) -> bool:
    """Tell whether the burst was reported as overdue in its present state."""
    if not burst.live:
        return False
    told = (event.timestamp for event in burst.events if event.name == "overdue")
    return any(at >= burst.since for at in told)


def is_paused(burst: Burst, world: World) -> bool:
    """Tell whether the burst's next call waits, as its provider asked for a pause."""
    call = world.calls.get(burst.id)
    return call is not None and call.told != call.note


def is_past_lease(burst: Burst, now: float) -> bool:
    """Tell whether something of the burst may be left long after its lease ended."""
    end = burst.lease.end
    return burst.live and 0 < end < now - _LEASE_GRACE_S


def _is_this(burst: Burst, world: World) -> bool:
    call = world.calls.get(burst.id)
    return (
        call is not None
        and burst.resize is not None
        and (call.verb, call.nodes) == (Verb.RESIZE, burst.resize.nodes)
    )
