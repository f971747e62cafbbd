# SPDX-License-Identifier: MIT
"""Lists and deletes bursts without a daemon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

import msgspec

from burst.config import Settings
from burst.core.provider_health import Outcome, Verb
from burst.core.world import LastCall, repeat_at
from burst.errors import ConfigError, Transient
from burst.model.fsd import format_fsd
from burst.provider import OwnedBurst, Provider
from burst.runtime import provider_registry
from burst.runtime.call_line import QueuedCall
from burst.runtime.clock import Clock
from burst.runtime.executor import CallResult, ProviderWorkers
from burst.runtime.last_call import ProviderBurst, ended_call, next_call

_T = TypeVar("_T")

ANSWERED_WITHIN = 60.0
"""Seconds that a provider may take to return its bursts."""
RETURNS_WITHIN = 300.0
"""Seconds after which a call of `reap` counts as one that hangs. It waits for nothing
(`burst.provider`), but may send a request for each node of a large burst."""


def call_each(
    providers: Mapping[str, Provider],
    verb: Verb = Verb.OBSERVE,
    limit: float = ANSWERED_WITHIN,
) -> dict[str, CallResult]:
    """Return the result of `observe`, or `offers`, of each provider that answered.

    Each is called on a thread of its own and has `limit` seconds, so that one that
    fails or hangs does not keep the others from being read.
    """
    clock, answered = Clock(), threading.Event()
    workers = ProviderWorkers(clock, answered.set)
    for name in providers:
        call = QueuedCall(provider=name, verb=verb, providers=providers)
        workers.submit(call)
    results: dict[str, CallResult] = {}
    ends = clock() + limit
    while len(results) < len(providers) and (left := ends - clock()) > 0:
        answered.wait(left)
        answered.clear()
        results |= {result.call.provider: result for result in workers.collect()}
    workers.close()
    return results


def answer_within(call: Callable[[], _T], limit: float, what: str) -> _T:
    """Return what a call of a provider returns. Raises Transient after `limit` seconds.

    `what` names the call. Raises what it raises.
    """
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller
            answer.set_exception(error)

    # A daemon thread, so that the process can end while the call hangs.
    threading.Thread(target=run, daemon=True).start()
    if not wait([answer], limit).done:
        raise Transient(f"{what}: no answer within {format_fsd(limit)}", "try again")
    return answer.result()


def reap_until_gone(
    bursts: Iterable[ProviderBurst],
    providers: Mapping[str, Provider],
    tell: Callable[[ProviderBurst, LastCall], None],
    limit: float,
    call_limit: float = RETURNS_WITHIN,
) -> dict[str, str]:
    """Delete bursts as a daemon would, for at most `limit` seconds.

    `reap` is called for each until NotFound, at least once, with longer pauses each
    time; of each provider there is one call at a time. A provider whose call does not
    return within `call_limit` seconds is left, and the others go on. `tell` gets each
    answer that differs from the one before. Returns the bursts that are left, and why.
    """
    return _Reaps(bursts, providers, tell, limit, call_limit).run()


class _Reaps:
    """The calls of one `reap_until_gone`."""

    def __init__(
        self,
        bursts: Iterable[ProviderBurst],
        providers: Mapping[str, Provider],
        tell: Callable[[ProviderBurst, LastCall], None],
        limit: float,
        call_limit: float,
    ) -> None:
        self._providers, self._tell = providers, tell
        self._clock, self._answered = Clock(), threading.Event()
        self._workers = ProviderWorkers(self._clock, self._answered.set)
        self._ends, self._call_limit = self._clock() + limit, call_limit
        # When the next call for a burst is due. A burst that is gone has no entry.
        self._due = {key: self._clock() for key in bursts}
        self._calls: dict[ProviderBurst, LastCall] = {}
        # By provider: the burst of the call under way, and until when it may last.
        self._under_way: dict[str, tuple[ProviderBurst, float]] = {}
        self._hung: set[str] = set()

    def run(self) -> dict[str, str]:
        """Make the calls; return the bursts that are left, and why."""
        while (wake_at := self._begin()) is not None:
            self._answered.wait(max(0.0, wake_at - self._clock()))
            self._answered.clear()
            for result in self._workers.collect():
                self._end(result)
            self._leave_hung()
        self._workers.close()
        return {key[1]: self._why_left(key) for key in self._due}

    def _begin(self) -> float | None:
        """Begin the calls now due; return when to look again, None if all ended."""
        wake_at = []
        for key, at in self._next_of_each():
            if at > self._clock():
                wake_at.append(at)
                continue
            name, burst = key
            self._under_way[name] = key, self._clock() + self._call_limit
            self._workers.submit(
                QueuedCall(
                    provider=name,
                    verb=Verb.REAP,
                    burst=burst,
                    providers=self._providers,
                )
            )
        wake_at += [until for _, until in self._under_way.values()]
        return min(wake_at, default=None)

    def _next_of_each(self) -> list[tuple[ProviderBurst, float]]:
        """Return the burst to call next of each provider that has no call under way."""
        found: dict[str, tuple[ProviderBurst, float]] = {}
        for key, at in sorted(self._due.items(), key=lambda entry: entry[1]):
            name = key[0]
            if name in self._under_way or name in self._hung:
                continue
            if at < self._ends or key not in self._calls:
                found.setdefault(name, (key, at))
        return list(found.values())

    def _end(self, result: CallResult) -> None:
        name = result.call.provider
        if name in self._hung:
            return
        key, _ = self._under_way.pop(name)
        before = self._calls.get(key)
        note_before = before.note if before else None
        call = ended_call(next_call(before, Verb.REAP), result, note_before)
        self._calls[key] = call
        self._due[key] = repeat_at(call)
        if call.outcome is Outcome.NOT_FOUND:
            del self._due[key]
        if call.note != note_before:
            self._tell(key, call)

    def _leave_hung(self) -> None:
        for name, (key, until) in list(self._under_way.items()):
            if self._clock() >= until:
                del self._under_way[name]
                self._hung.add(name)
                note = f"reap did not return within {format_fsd(self._call_limit)}"
                call = next_call(self._calls.get(key), Verb.REAP)
                call = msgspec.structs.replace(call, note=note)
                self._calls[key] = call
                self._tell(key, call)

    def _why_left(self, key: ProviderBurst) -> str:
        call = self._calls.get(key)
        if call is None:
            return f"not tried, as a call of provider {key[0]} did not return"
        return call.note or "still there"


EXPIRED_AFTER = 600.0
"""Seconds after the end of its lease at which a burst counts as expired: by then its
daemon, if there is one, and the cluster have deleted it by themselves."""
_NOBODY = "burst-gc"


def has_expired(burst: OwnedBurst, now: float) -> bool:
    """Tell whether the burst's lease ended at least EXPIRED_AFTER seconds ago.

    `now` is in seconds since the epoch. A burst whose lease has no end never expires.
    """
    return bool(burst.lease_end) and now - burst.lease_end >= EXPIRED_AFTER


class Leftovers:
    """The bursts of all owners in the place of one provider of the settings.

    They are found and deleted by their tags alone, for when their lead is lost. No
    record is read, so a burst that its lead still uses is listed as well. Choose the
    bursts to delete by their owner, or by the end of their lease.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        """Raises ConfigError if there is no provider of this name, or it is wrong."""
        table = settings.providers.get(name)
        if table is None:
            raise ConfigError(
                f"there is no provider {name} in the settings",
                f"there are {', '.join(settings.providers) or 'none'}; use -c to name"
                " the daemon's settings file, in which it is",
            )
        self._name, self._table = name, table
        self._provider = provider_registry.load_provider(name, table, _NOBODY)

    def place(self) -> str:
        """Return where the provider looks, in its own words; empty if it has none."""
        return self._provider.place()

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return all bursts that the provider sees.

        Raises ConfigError if it cannot list them, Transient if it does not answer, and
        what its `list_all` raises.
        """
        provider = self._provider
        if not provider.has("list_all"):
            raise ConfigError(
                f"providers.{self._name}: type {self._table.type} cannot list bursts"
                " without their lead",
                "run burst gc without --provider, on the lead",
            )
        asked = f"provider {self._name}: list_all"
        return answer_within(provider.list_all, ANSWERED_WITHIN, asked)

    def delete(
        self,
        bursts: Iterable[OwnedBurst],
        tell: Callable[[ProviderBurst, LastCall], None],
        limit: float,
    ) -> dict[str, str]:
        """Delete these bursts until nothing is left, for at most `limit` seconds.

        Each is deleted by a provider with the burst's own owner and provider name.
        Returns the bursts that are left, and why.
        """
        providers: dict[str, Provider] = {}
        keys = []
        for burst in bursts:
            key = f"{burst.owner}/{burst.provider}"
            if key not in providers:
                providers[key] = provider_registry.load_provider(
                    burst.provider, self._table, burst.owner
                )
            keys.append((key, burst.burst_id))
        return reap_until_gone(keys, providers, tell, limit)
