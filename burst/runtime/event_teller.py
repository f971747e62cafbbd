# SPDX-License-Identifier: MIT
"""Has providers note the events of their bursts (`Provider.record_event`).

A thread of its own does this, and no burst waits for it. Events that cannot be noted
are left out, and so are events that come faster than they may be written.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from burst import log
from burst.core.burst_story import sentence
from burst.errors import NotFound, ProviderError, Transient
from burst.model.burst import Burst, BurstId
from burst.model.event import Event, cut
from burst.provider import Provider

TOLD = frozenset(
    {
        *("submit", "online", "lost", "back", "reclaimed", "grown", "shrunk"),
        *("overdue", "quarantine", "drain", "drained", "exception", "finish", "reaped"),
    }
)
"""The events that are noted: a few for each burst, however many jobs it runs."""
_MOST = 200
"""How many events may wait; the oldest is left out when there are more."""
_PAUSE_S = 0.25
"""Seconds after each attempt, noted or not: four in a second, of all bursts."""
_PATIENT_S = 60.0
"""Seconds for which an event is tried: the burst may not have an object yet that the
event can be noted at, or the provider may not answer. _MOST events take less time."""
_ALONE_S = 600.0
"""Seconds for which a provider that could not note an event is not called."""


class _Told(msgspec.Struct, frozen=True):
    provider: str
    burst: BurstId
    event: Event
    until: float


class EventTeller:
    """`tell` and `close` belong to one thread."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, pause: float = _PAUSE_S
    ) -> None:
        self._clock, self._pause = clock, pause
        self._waiting: deque[_Told] = deque(maxlen=_MOST)
        self._providers: Mapping[str, Provider] = {}
        self._alone: dict[str, float] = {}
        """By provider that could not note an event: when it is called again."""
        self._new = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(
        self,
        providers: Mapping[str, Provider],
        bursts: Mapping[BurstId, Burst],
        events: Iterable[tuple[BurstId, Event]],
    ) -> None:
        """Have these events noted by the providers of their bursts.

        This returns at once, and raises nothing.
        """
        self._providers = providers
        until = self._clock() + _PATIENT_S
        for burst_id, event in events:
            burst = bursts.get(burst_id)
            if burst is None or event.name not in TOLD:
                continue
            name = burst.lease.provider
            provider = providers.get(name)
            if provider is not None and provider.has("record_event"):
                self._waiting.append(_Told(name, burst_id, event, until))
        if self._waiting:
            self._start()
            self._new.set()

    def close(self) -> None:
        """Note no more events. A call under way ends by itself."""
        self._closing.set()
        self._new.set()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="event-teller", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(self._pause):
            if not self._waiting:
                self._new.wait()
                self._new.clear()
                continue
            told = self._waiting.popleft()
            if not self._note(told):
                self._waiting.append(told)

    def _note(self, told: _Told) -> bool:
        """Try to note an event; return False if it has to be tried again."""
        now = self._clock()
        provider = self._providers.get(told.provider)
        left_alone = now < self._alone.get(told.provider, now)
        if now >= told.until or left_alone or provider is None:
            return True
        if not provider.has("record_event"):
            return True
        try:
            provider.record_event(told.burst, told.event, text_of(told.event))
        except (NotFound, Transient):
            return False
        except ProviderError as error:
            self._leave_alone(told.provider, str(error))
        except Exception as error:  # noqa: BLE001 - of a plug-in
            self._leave_alone(told.provider, f"{type(error).__name__}: {error}")
        return True

    def _leave_alone(self, provider: str, why: str) -> None:
        self._alone[provider] = self._clock() + _ALONE_S
        log.warn(
            "provider %s cannot record events of its bursts: %s; bursts go on",
            provider,
            why,
        )


def text_of(event: Event) -> str:
    """Return the sentence that describes an event, with the reason that it gives."""
    said, note = sentence(event), str(event.context.get("note") or "")
    if event.name == "submit":
        jobs = ", ".join(event.context.get("jobs") or ())
        return cut(f"{said} for jobs {jobs}" if jobs else said)
    return cut(said if not note or note in said else f"{said}: {note}")
