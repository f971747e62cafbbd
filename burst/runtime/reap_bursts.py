# SPDX-License-Identifier: MIT
"""Lists and deletes bursts without a daemon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from burst.core.provider_health import Outcome, Verb
from burst.core.world import LastCall, repeat_at
from burst.provider import Provider
from burst.runtime.clock import Clock
from burst.runtime.executor import CallResult, ProviderWorkers, run_call
from burst.runtime.last_call import ProviderBurst, ended_call, next_call
from burst.runtime.queued_call import QueuedCall

# Seconds that a provider may take to return its bursts.
ANSWERED_WITHIN = 60.0


def observe_each(
    providers: Mapping[str, Provider], limit: float = ANSWERED_WITHIN
) -> dict[str, CallResult]:
    """Return the result of `observe` for each provider that answered.

    Each is called on a thread of its own and has `limit` seconds, so that one that
    fails or hangs does not keep the others from being read.
    """
    clock, answered = Clock(), threading.Event()
    workers = ProviderWorkers(clock, answered.set)
    for name in providers:
        call = QueuedCall(provider=name, verb=Verb.OBSERVE, providers=providers)
        workers.submit(call)
    results: dict[str, CallResult] = {}
    ends = clock() + limit
    while len(results) < len(providers) and (left := ends - clock()) > 0:
        answered.wait(left)
        answered.clear()
        results |= {result.call.provider: result for result in workers.collect()}
    workers.close()
    return results


def reap_until_gone(
    bursts: Iterable[ProviderBurst],
    providers: Mapping[str, Provider],
    tell: Callable[[ProviderBurst, LastCall], None],
    limit: float,
) -> dict[str, str]:
    """Delete bursts as a daemon would, for at most `limit` seconds.

    `reap` is called for each until NotFound, at least once, with longer pauses each
    time. `tell` gets each answer that differs from the one before. Returns the bursts
    that are left, and why.
    """
    clock = Clock()
    ends = clock() + limit
    due = {key: clock() for key in bursts}
    calls: dict[ProviderBurst, LastCall] = {}
    while due:
        key = min(due, key=lambda key: due[key])
        before = calls.get(key)
        if before and due[key] >= ends:
            break
        time.sleep(max(0.0, due[key] - clock()))
        name, burst = key
        note_before = before.note if before else None
        reap = QueuedCall(
            provider=name, verb=Verb.REAP, burst=burst, providers=providers
        )
        result = run_call(reap, clock)
        call = ended_call(next_call(before, Verb.REAP), result, note_before)
        if call.note != note_before:
            tell(key, call)
        calls[key] = call
        due[key] = repeat_at(call)
        if call.outcome is Outcome.NOT_FOUND:
            del due[key]
    return {key[1]: calls[key].note or "still there" for key in due}
