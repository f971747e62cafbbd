# SPDX-License-Identifier: MIT
"""Runs the calls of each provider on a thread of its own; errors become results.

A provider that blocks or hangs delays its own bursts only.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from burst.core.provider_answers import (
    LONGEST_WHY,
    check_offers,
    check_statuses,
    storable,
)
from burst.core.provider_health import Outcome, Verb
from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Forced, Provider

Clock = Callable[[], float]

# The first that fits counts. ConfigError is what our kits raise for a wrong setting.
_OUTCOMES: tuple[tuple[tuple[type[Exception], ...], Outcome], ...] = (
    ((NotFound,), Outcome.NOT_FOUND),
    ((InsufficientCapacity,), Outcome.CAPACITY),
    ((SpecRefused,), Outcome.SPEC),
    ((Refused, ConfigError, CertificateError), Outcome.REFUSED),
    ((Transient,), Outcome.TRANSIENT),
)


class QueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a provider's method."""

    provider: str
    verb: Verb
    burst: BurstId | None = None
    orphan: bool = False
    """Whether no record explains that burst."""
    force: bool = False
    """Of `reap`: a person wants it done without a host that does not answer."""
    spec: BurstSpec | SpecRefused | None = None
    """Of `provision`; SpecRefused where no spec could be made, which is then raised."""
    generation: int = 0
    """Of the provider's settings: another after a reload that changed them."""
    providers: Mapping[str, Provider]
    """Read when the call runs: a call that waited for another is for the provider that
    the settings name by then."""

    def run(self) -> Any:
        """Call the method. Raises BadAnswer, and what the method raises."""
        provider = self.providers[self.provider]
        match self.verb:
            case Verb.OFFERS:
                return read_offers(provider)
            case Verb.OBSERVE:
                return read_statuses(provider)
            case Verb.PROVISION:
                if isinstance(self.spec, SpecRefused):
                    raise self.spec
                assert self.spec is not None
                provider.provision(self.spec)
            case Verb.REAP:
                assert self.burst is not None
                if self.force and isinstance(provider, Forced):
                    provider.force_reap(self.burst)
                else:
                    provider.reap(self.burst)
        return None


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    call: QueuedCall
    began_at: float
    done_at: float
    outcome: Outcome
    note: str = ""
    retry_after: float | None = None
    value: Any = None
    error: BaseException | None = None
    """The exception, where it is of no class that a provider may raise."""


class Executor(Protocol):
    """Where calls are run."""

    def submit(self, call: QueuedCall) -> None:
        """Have the call run, after those submitted before for the same provider."""
        ...

    def collect(self) -> list[CallResult]:
        """Return the results since `collect` was called last."""
        ...

    def close(self) -> None:
        """Take no more calls. One under way goes on; its result is dropped."""
        ...


class ProviderWorkers:
    """One daemon thread for each provider, started at its first call."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._calls: dict[str, queue.SimpleQueue[QueuedCall | None]] = {}
        self._busy: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._results: queue.SimpleQueue[CallResult] = queue.SimpleQueue()

    def submit(self, call: QueuedCall) -> None:
        """Queue the call for its provider's thread."""
        if call.provider not in self._calls:
            calls: queue.SimpleQueue[QueuedCall | None] = queue.SimpleQueue()
            self._calls[call.provider] = calls
            name = f"provider-{call.provider}"
            # A daemon thread, so that the process can end while a provider hangs.
            thread = threading.Thread(
                target=self._work, args=(calls,), name=name, daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._calls[call.provider].put(call)

    def collect(self) -> list[CallResult]:
        """Return the results so far."""
        results: list[CallResult] = []
        while not self._results.empty():
            results.append(self._results.get())
        return results

    def busy(self, provider: str) -> bool:
        """Tell whether a call of the provider is under way."""
        return provider in self._busy

    def close(self) -> None:
        """Have each thread end after the calls that were submitted."""
        for calls in self._calls.values():
            calls.put(None)

    def finish(self, timeout: float) -> bool:
        """Let all that was submitted run to its end; tell whether it did in time."""
        self.close()
        ends = self._clock() + timeout
        for thread in self._threads:
            thread.join(max(0.0, ends - self._clock()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, calls: queue.SimpleQueue[QueuedCall | None]) -> None:
        while call := calls.get():
            self._busy.add(call.provider)
            result = run_call(call, self._clock)
            self._busy.discard(call.provider)
            self._results.put(result)
            self._wake()


def read_offers(provider: Provider) -> Any:
    """Return the checked offers. Raises BadAnswer, and what `offers` raises."""
    return check_offers(provider.offers())


def read_statuses(provider: Provider) -> Any:
    """Return the checked statuses. Raises BadAnswer, and what `observe` raises."""
    return check_statuses(provider.observe())


def run_call(call: QueuedCall, clock: Clock) -> CallResult:
    """Run a call now. Never raises: the class of what the call raised is the outcome.

    Also where it is no Exception, such as asyncio.CancelledError: it would end the
    worker's thread, and no burst of that provider would be deleted any more.
    """
    began_at = clock()
    value: Any = None
    error: BaseException | None = None
    try:
        value = call.run()
    except BaseException as raised:  # noqa: BLE001 - see above
        error = raised
    outcome = _outcome_of(error)
    unexpected = outcome is Outcome.UNEXPECTED
    text = "" if error is None else _text_of(error)
    note = f"{type(error).__name__}: {text}" if unexpected else text
    return CallResult(
        call=call,
        began_at=began_at,
        done_at=clock(),
        outcome=outcome,
        note=storable(note[:LONGEST_WHY]),
        retry_after=_retry_after(error) if isinstance(error, Transient) else None,
        value=value,
        error=error if unexpected else None,
    )


def _outcome_of(error: BaseException | None) -> Outcome:
    """Return the outcome for what a call raised, None where it returned."""
    if error is None:
        return Outcome.OK
    found = (outcome for kinds, outcome in _OUTCOMES if isinstance(error, kinds))
    return next(found, Outcome.UNEXPECTED)


def _text_of(error: BaseException) -> str:
    """Return the text of an error. An error of a plug-in may fail to give one."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "it has no text"


def _retry_after(error: Transient) -> float | None:
    """Return the error's `retry_after` in seconds, None if it is no finite number."""
    asked: object = error.retry_after
    try:
        seconds = float(asked) if isinstance(asked, int | float) else math.nan
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None
