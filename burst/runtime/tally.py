# SPDX-License-Identifier: MIT
"""What the daemon has counted since its process began, for metrics.

An event is counted when the engine takes over the records with it, so never twice: the
events of a result that the engine gave up, as the store refused it, come again. One
thread writes; any may read, as each value is replaced whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from burst.core.provider_health import WORKS
from burst.core.records import Records
from burst.model.burst import Burst, BurstId
from burst.model.distribution import Distribution
from burst.model.event import Event
from burst.runtime.executor import CallResult

STAGES: Mapping[str, tuple[str, str]] = {
    "provision": ("provision-start", "provision-finish"),
    "join": ("provision-finish", "online"),
    "online": ("provision-start", "online"),
    "drain": ("drain", "drained"),
    "reap": ("drained", "reaped"),
    "end": ("exception", "reaped"),
}
"""Stages of a burst, and the events with which each begins and ends."""
_Key = tuple[str, ...]


class Tally:
    """Counts, and durations in seconds, by their labels."""

    def __init__(self) -> None:
        self.started: Counter[_Key] = Counter()
        """Bursts whose provider was called, by provider and offer."""
        self.ended: Counter[_Key] = Counter()
        """Bursts of which nothing is left, by provider, offer and result."""
        self.stages: dict[_Key, Distribution] = {}
        """Durations of STAGES, by provider and stage."""
        self.calls: dict[_Key, Distribution] = {}
        """Durations of calls of providers, by provider and method."""
        self.call_errors: Counter[_Key] = Counter()
        """Calls of providers that failed, by provider, method and outcome."""
        self.ticks = Distribution()
        self.failed_ticks = 0
        """Ticks whose records the store refused."""
        self.forecast_errors = Distribution()
        """Seconds between the first forecast of a job's start and its start."""

    def tick(self, seconds: float) -> None:
        """Count a tick that was taken."""
        self.ticks = self.ticks.plus(seconds)

    def failed_tick(self) -> None:
        """Count a tick whose records the store refused."""
        self.failed_ticks += 1

    def forecast_error(self, seconds: float) -> None:
        """Count a job that started so many seconds later or sooner than expected."""
        self.forecast_errors = self.forecast_errors.plus(abs(seconds))

    def recorded(
        self, events: Iterable[tuple[BurstId, Event]], records: Records
    ) -> None:
        """Count recorded events; `records` are the records with them."""
        for name, event in events:
            burst = records.bursts.get(name)
            if burst is not None:
                self._count_event(burst, event)

    def called(self, result: CallResult) -> None:
        """Count a call of a provider that has ended."""
        key = result.call.provider, result.call.verb.value
        _add(self.calls, key, result.done_at - result.began_at)
        if result.outcome not in WORKS:
            self.call_errors[(*key, result.outcome.value)] += 1

    def _count_event(self, burst: Burst, event: Event) -> None:
        provider, offer = burst.lease.provider, burst.lease.offer
        if event.name == "provision-start":
            self.started[provider, offer] += 1
        elif event.name == "reaped":
            result = burst.result.value if burst.result else "completed"
            self.ended[provider, offer, result] += 1
        for stage, (begins, ends) in STAGES.items():
            began = _last(burst.events, begins) if event.name == ends else None
            if began is not None:
                _add(self.stages, (provider, stage), event.timestamp - began)


def _last(events: Sequence[Event], name: str) -> float | None:
    times = (event.timestamp for event in reversed(events) if event.name == name)
    return next(times, None)


def _add(into: dict[_Key, Distribution], key: _Key, seconds: float) -> None:
    into[key] = into.get(key, Distribution()).plus(seconds)
