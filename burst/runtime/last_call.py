# SPDX-License-Identifier: MIT
"""What is kept of the calls for one burst: the last one, and how often it was made."""

from __future__ import annotations

import msgspec

from burst import log
from burst.core.provider_health import Outcome, Verb, pause_after
from burst.core.world import LastCall
from burst.model.burst import BurstId
from burst.runtime.executor import CallResult

ProviderBurst = tuple[str, BurstId]
"""A provider's name, and the id of a burst that it has."""


def next_call(before: LastCall | None, verb: Verb, nodes: int = 0) -> LastCall:
    """Return the call that is made now, counted on from the same call before it.

    A `resize` for another number of nodes is another call.
    """
    call = LastCall(verb=verb, nodes=nodes)
    if before is None or (before.verb, before.nodes) != (verb, nodes):
        return call
    again = before.outcome not in (Outcome.PENDING, Outcome.NOT_FOUND)
    attempts = before.attempts + 1 if again else 1
    return msgspec.structs.replace(call, attempts=attempts, taken_at=before.taken_at)


def ended_call(call: LastCall, result: CallResult, note_before: str | None) -> LastCall:
    """Return the call with its result, and log an unexpected error that is new.

    `note_before` is the note of the call before it, None if there was none.
    """
    if result.error and result.note != note_before:
        asked = result.call
        log.failure(
            "provider %s: %s of %s raised an unexpected error; it is tried again",
            asked.provider,
            asked.verb.value,
            asked.burst,
            error=result.error,
        )
    is_ok = result.outcome is Outcome.OK
    pause = pause_after(result.outcome, call.attempts, result.retry_after)
    return msgspec.structs.replace(
        call,
        outcome=result.outcome,
        note=result.note,
        offers=result.offers,
        by_rule=result.by_rule,
        done_at=result.done_at,
        retry_at=result.done_at + pause,
        taken_at=call.taken_at or (result.done_at if is_ok else 0.0),
    )


def describe_reap(key: ProviderBurst, call: LastCall) -> str:
    """Return one line on how the deletion of an orphan or a leftover goes on."""
    provider, burst = key
    about = f"{burst} of provider {provider}"
    if call.outcome is Outcome.NOT_FOUND:
        return f"{about} is gone"
    if call.outcome is Outcome.OK:
        return f"{about} is being deleted"
    return f"{about} cannot be deleted yet: {call.note}"
