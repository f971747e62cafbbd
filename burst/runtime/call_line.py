# SPDX-License-Identifier: MIT
"""The calls of one provider that wait, and those that are under way."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from burst.core.provider_health import Verb
from burst.model.burst import BurstId
from burst.provider import Provider
from burst.runtime.queued_call import QueuedCall

# The most calls at a time of one provider. A higher `concurrency` is a mistake, and
# threads are not free.
_MOST = 32


class CallOwner(Protocol):
    """Who has calls run, and gets their results. Called on the threads of the calls."""

    def run(self, call: QueuedCall) -> None:
        """Run the call, and keep its result."""
        ...

    def wake(self) -> None:
        """Note that a call has ended, and is no longer under way."""
        ...


class LineCall(NamedTuple):
    """A call, and who has it run."""

    call: QueuedCall
    owner: CallOwner


class CallLine:
    """A queue of calls in the order of arrival. Any thread may take calls from it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[LineCall] = []
        # Each with the provider object that is called, which a reload may replace.
        self._running: list[tuple[LineCall, Provider | None]] = []
        self._threads = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return bool(self._running)

    def put(self, call: QueuedCall, owner: CallOwner) -> bool:
        """Add a call; return whether one more thread is to take calls."""
        with self._changed:
            self._waiting.append(LineCall(call, owner))
            self._changed.notify_all()
            wanted = len(self._waiting) + len(self._running)
            more = self._threads < min(wanted, _calls_of(_provider_of(call)))
            self._threads += more
            return more

    def take(self) -> LineCall | None:
        """Wait for a call that may run now, and return it; None if closed and empty."""
        with self._changed:
            while (index := self._first()) is None:
                if self._closed and not self._waiting:
                    return None
                self._changed.wait()
            taken = self._waiting.pop(index)
            self._running.append((taken, _provider_of(taken.call)))
            return taken

    def done(self, call: LineCall) -> None:
        """Note that a call has ended."""
        with self._changed:
            self._running = [entry for entry in self._running if entry[0] is not call]
            self._changed.notify_all()

    def drop(self, owner: CallOwner) -> None:
        """Remove the owner's calls that wait. Those under way go on."""
        with self._changed:
            self._waiting = [each for each in self._waiting if each.owner is not owner]
            self._changed.notify_all()

    def is_quiet(self, within: float) -> bool:
        """Return whether no call is under way within `within` seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._running, min(within, threading.TIMEOUT_MAX)
            )

    def close(self) -> None:
        """Have `take` return None once no call waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _first(self) -> int | None:
        """Return the place of the first call that may run now; None if none may."""
        return next(filter(self._may_run, range(len(self._waiting))), None)

    def _may_run(self, index: int) -> bool:
        call = self._waiting[index].call
        provider = _provider_of(call)
        if len(self._running) >= _calls_of(provider):
            return False
        if any(other is not provider for _, other in self._running):
            # One from before a reload, or of an earlier session, has to end first.
            return False
        before = [*self._waiting[:index], *(running for running, _ in self._running)]
        return all(_subject(call) != _subject(other.call) for other in before)


class CallLines:
    """The lines of all providers, by name. A daemon has them for all its sessions.

    So a call of a session that has ended and one of the next are not made at the same
    time for one burst.
    """

    def __init__(self) -> None:
        self._lines: dict[str, CallLine] = {}

    def of(self, provider: str) -> CallLine:
        """Return the line of a provider."""
        return self._lines.setdefault(provider, CallLine())

    def drop(self, owner: CallOwner) -> None:
        """See `CallLine.drop`."""
        for line in self._lines.values():
            line.drop(owner)

    def close(self) -> None:
        """See `CallLine.close`."""
        for line in self._lines.values():
            line.close()


def _subject(call: QueuedCall) -> BurstId | Verb:
    """Return the burst or method for which only one call may run at a time."""
    return call.verb if call.burst is None else call.burst


def _provider_of(call: QueuedCall) -> Provider | None:
    """Return the provider object that is called; None if a reload removed it."""
    return call.providers.get(call.provider)


def _calls_of(provider: Provider | None) -> int:
    """Return how many calls the provider may have at a time."""
    return 1 if provider is None else min(provider.concurrency, _MOST)
