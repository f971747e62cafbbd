# SPDX-License-Identifier: MIT
"""Runs what providers are asked, one worker thread each, and turns errors to answers.

A provider may block or hang; then its own bursts wait, and nobody else's.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
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
from burst.provider import Provider

Clock = Callable[[], float]

# The first that fits. A wrong setting, as our kits raise it, is a lasting refusal of
# its provider.
_MEANINGS: tuple[tuple[tuple[type[Exception], ...], Outcome], ...] = (
    ((NotFound,), Outcome.NOT_FOUND),
    ((InsufficientCapacity,), Outcome.CAPACITY),
    ((SpecRefused,), Outcome.SPEC),
    ((Refused, ConfigError, CertificateError), Outcome.REFUSED),
    ((Transient,), Outcome.TRANSIENT),
)


class ProviderCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a provider's method."""

    provider: str
    verb: Verb
    burst: BurstId | None = None
    orphan: bool = False
    """Whether no record explains that burst."""
    number: int = 0
    """Of the provider's settings: another after a reload that changed them."""
    run: Callable[[], Any]


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task."""

    task: ProviderCall
    began_at: float
    done_at: float
    outcome: Outcome
    note: str = ""
    retry_after: float | None = None
    value: Any = None
    error: BaseException | None = None
    """What was raised and nobody expected."""


class Executor(Protocol):
    """Where tasks run."""

    def submit(self, task: ProviderCall) -> None:
        """Have the task run, after those submitted before for the same provider."""
        ...

    def collect(self) -> list[CallResult]:
        """Return the answers that came since the last call."""
        ...

    def close(self) -> None:
        """Take no more tasks. A call under way goes on; its answer is dropped."""
        ...


class ProviderWorkers:
    """One daemon thread a provider, made on its first task."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._tasks: dict[str, queue.SimpleQueue[ProviderCall | None]] = {}
        self._busy: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._answers: queue.SimpleQueue[CallResult] = queue.SimpleQueue()

    def submit(self, task: ProviderCall) -> None:
        """Queue the task for its provider's thread."""
        if task.provider not in self._tasks:
            tasks: queue.SimpleQueue[ProviderCall | None] = queue.SimpleQueue()
            self._tasks[task.provider] = tasks
            name = f"provider-{task.provider}"
            # A daemon thread: a provider that hangs must not keep us from stopping.
            thread = threading.Thread(
                target=self._work, args=(tasks,), name=name, daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._tasks[task.provider].put(task)

    def collect(self) -> list[CallResult]:
        """Return the answers so far."""
        answers: list[CallResult] = []
        while not self._answers.empty():
            answers.append(self._answers.get())
        return answers

    def busy(self, provider: str) -> bool:
        """Tell whether a call of the provider is under way."""
        return provider in self._busy

    def close(self) -> None:
        """Have each thread end after its present call."""
        for tasks in self._tasks.values():
            tasks.put(None)

    def finish(self, timeout: float) -> bool:
        """Let all that was submitted run to its end; tell whether it did in time."""
        self.close()
        ends = self._clock() + timeout
        for thread in self._threads:
            thread.join(max(0.0, ends - self._clock()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, tasks: queue.SimpleQueue[ProviderCall | None]) -> None:
        while task := tasks.get():
            self._busy.add(task.provider)
            answer = run_call(task, self._clock)
            self._busy.discard(task.provider)
            self._answers.put(answer)
            self._wake()


def read_offers(provider: Provider) -> Any:
    """Return what a provider offers. Raises BadAnswer, and what it raises."""
    return check_offers(provider.offers())


def read_statuses(provider: Provider) -> Any:
    """Return what a provider sees of its bursts. Raises as `read_offers`."""
    return check_statuses(provider.observe())


def run_call(task: ProviderCall, clock: Clock) -> CallResult:
    """Run a task now. Never raises: the class of what it raised is the outcome.

    That goes for what is no Exception, too, such as asyncio.CancelledError: it would
    end the worker's thread, and nothing of that provider would be deleted any more.
    """
    began_at = clock()
    value: Any = None
    error: BaseException | None = None
    try:
        value = task.run()
    except BaseException as raised:  # noqa: BLE001 - see above
        error = raised
    outcome = _outcome(error)
    unexpected = outcome is Outcome.UNEXPECTED
    text = "" if error is None else _text(error)
    note = f"{type(error).__name__}: {text}" if unexpected else text
    return CallResult(
        task=task,
        began_at=began_at,
        done_at=clock(),
        outcome=outcome,
        note=storable(note[:LONGEST_WHY]),
        retry_after=_patience(error) if isinstance(error, Transient) else None,
        value=value,
        error=error if unexpected else None,
    )


def _outcome(error: BaseException | None) -> Outcome:
    """Return what a call means by what it raised, None where it returned."""
    if error is None:
        return Outcome.OK
    found = (outcome for kinds, outcome in _MEANINGS if isinstance(error, kinds))
    return next(found, Outcome.UNEXPECTED)


def _text(error: BaseException) -> str:
    """Return what an error says. A plug-in's may fail at that, too."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "it does not say why"


def _patience(error: Transient) -> float | None:
    """Return after how many seconds it may be asked again, None if that is no number.

    A plug-in may have set anything.
    """
    asked: object = error.retry_after
    try:
        seconds = float(asked) if isinstance(asked, int | float) else math.nan
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None
