# SPDX-License-Identifier: MIT
"""The calls of one provider: as they wait, and as they are made."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from burst.core.provider_health import Verb
from burst.errors import SpecRefused
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.provider_answers import check_offers, check_statuses


class QueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a provider's method."""

    provider: str
    verb: Verb
    burst: BurstId | None = None
    orphan: bool = False
    """Whether the burst is an orphan, which no record explains."""
    force: bool = False
    """For `reap`: a person wants it not to wait for a host that does not answer."""
    spec: BurstSpec | SpecRefused | None = None
    """For `provision` and `resize`; SpecRefused, which the call then raises, if no spec
    could be made."""
    generation: int = 0
    """Number of the provider object: a reload that replaces it raises the number."""
    providers: Mapping[str, Provider]
    """By name. Read when the call runs: a call that waited for another is for the
    provider that the settings name by then."""

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
            case Verb.RESIZE:
                assert isinstance(self.spec, BurstSpec)
                if not provider.has("resize"):
                    raise SpecRefused(f"{self.provider} cannot resize bursts")
                provider.resize(self.spec)
            case Verb.REAP:
                assert self.burst is not None
                if self.force and provider.has("force_reap"):
                    provider.force_reap(self.burst)
                else:
                    provider.reap(self.burst)
        return None


def read_offers(provider: Provider) -> Any:
    """Return the checked offers. Raises BadAnswer, and what `offers` raises."""
    return check_offers(provider.offers())


def read_statuses(provider: Provider) -> Any:
    """Return the checked statuses. Raises BadAnswer, and what `observe` raises."""
    return check_statuses(provider.observe())


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
