# SPDX-License-Identifier: MIT
"""Runs the calls of each provider on threads of its own; errors become results.

A provider that blocks or hangs delays its own bursts only.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from burst.core.provider_health import Outcome
from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.provider_answers import LONGEST_WHY, storable
from burst.runtime.call_line import CallLine, CallLines, QueuedCall

Clock = Callable[[], float]

# The most offers that are set aside for one error.
_MOST_OFFERS = 100

# The first match counts. Our kits raise ConfigError for a wrong setting.
_OUTCOMES: tuple[tuple[tuple[type[Exception], ...], Outcome], ...] = (
    ((NotFound,), Outcome.NOT_FOUND),
    ((InsufficientCapacity,), Outcome.CAPACITY),
    ((SpecRefused,), Outcome.SPEC),
    ((Refused, ConfigError, CertificateError), Outcome.REFUSED),
    ((Transient,), Outcome.TRANSIENT),
)


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    call: QueuedCall
    began_at: float
    done_at: float
    outcome: Outcome
    note: str = ""
    retry_after: float | None = None
    offers: tuple[str, ...] = ()
    """Further offers that have no capacity."""
    by_rule: bool = False
    """Whether a rule forbids all bursts of the offer."""
    value: Any = None
    error: BaseException | None = None
    """The exception, if it is not of a class that a provider may raise; else None."""


class Executor(Protocol):
    """Runs calls of providers."""

    def submit(self, call: QueuedCall) -> None:
        """Have the call run, after those submitted before for the same burst."""
        ...

    def collect(self) -> list[CallResult]:
        """Return the results that have come since the last call of `collect`."""
        ...

    def close(self) -> None:
        """Take no more calls. A call under way goes on; its result is dropped."""
        ...


class ProviderWorkers:
    """Runs calls on daemon threads: one for each provider, or its `concurrency`.

    Only one call at a time is made for a burst, one of `observe`, and one of `offers`.
    After a reload, calls of the old provider object end before the new one is called;
    so do the calls of another ProviderWorkers with the same lines.
    """

    def __init__(
        self,
        clock: Clock,
        wake: Callable[[], None],
        lines: CallLines | None = None,
    ) -> None:
        """`lines` outlive this object; None for lines of its own, closed with it."""
        self._clock = clock
        self.wake = wake
        self._own = lines is None
        self._lines = CallLines() if lines is None else lines
        self._results: queue.SimpleQueue[CallResult] = queue.SimpleQueue()

    def submit(self, call: QueuedCall) -> None:
        """Queue the call for its provider's threads."""
        line = self._lines.of(call.provider)
        if line.put(call, self):
            # A daemon thread, so that the process can end while a provider hangs.
            threading.Thread(
                target=_work,
                args=(line,),
                name=f"provider-{call.provider}",
                daemon=True,
            ).start()

    def collect(self) -> list[CallResult]:
        """See `Executor`."""
        results: list[CallResult] = []
        while not self._results.empty():
            results.append(self._results.get())
        return results

    def busy(self, provider: str) -> bool:
        """Tell whether a call of the provider is under way."""
        return self._lines.of(provider).busy

    def close(self) -> None:
        """See `Executor`. Calls that wait are not made any more."""
        self._lines.drop(self)
        if self._own:
            self._lines.close()

    def run(self, call: QueuedCall) -> None:
        """See `CallOwner`."""
        self._results.put(run_call(call, self._clock))


def _work(line: CallLine) -> None:
    """Run the calls of a line until it is closed."""
    while (taken := line.take()) is not None:
        # First: a caller that sees no call under way must find its result.
        taken.owner.run(taken.call)
        line.done(taken)
        taken.owner.wake()
        del taken  # a thread that waits refers to no call, and so to no ended session


def run_call(call: QueuedCall, clock: Clock) -> CallResult:
    """Run a call now. Never raises: the class of what the call raised is the outcome.

    This holds for every BaseException, such as asyncio.CancelledError: it would end the
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
        offers=_offers(error) if isinstance(error, InsufficientCapacity) else (),
        by_rule=isinstance(error, SpecRefused) and error.by_rule is True,
        value=value,
        error=error if unexpected else None,
    )


def _outcome_of(error: BaseException | None) -> Outcome:
    """Return the outcome for the exception of a call; None means that it returned."""
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


def _offers(error: InsufficientCapacity) -> tuple[str, ...]:
    """Return the error's `offers`; none if it is no collection of names."""
    told: object = error.offers
    names = told if isinstance(told, tuple | list | set | frozenset) else ()
    return tuple(name for name in names if isinstance(name, str))[:_MOST_OFFERS]


def _retry_after(error: Transient) -> float | None:
    """Return the error's `retry_after` in seconds, None if it is no finite number."""
    asked: object = error.retry_after
    try:
        seconds = float(asked) if isinstance(asked, int | float) else math.nan
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None
