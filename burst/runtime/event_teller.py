# SPDX-License-Identifier: MIT
"""Has providers note what became of their bursts (`Provider.record_event`).

On a thread of its own, that no burst waits for: what cannot be noted is left out, and
so is what comes faster than it may be written.
"""

from __future__ import annotations

import logging
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
"""That wait at a time; the oldest is left out."""
_PAUSE_S = 0.25
"""Between two, whatever happens: four in a second, of all bursts."""
_PATIENT_S = 60.0
"""How long an event is tried: its burst may have nothing yet that it can be of, or the
provider not answer. As many as wait are noted in less."""
_ALONE_S = 600.0
"""How long a provider is left alone that could not note an event."""


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
        """Until when a provider is left alone."""
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

        It waits for nothing, and raises nothing.
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
        """Note nothing more. What is under way ends by itself."""
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
        """Return whether it is done with, be it noted or left out."""
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
        log.say(
            "provider %s cannot note what becomes of its bursts: %s; bursts go on",
            provider,
            why,
            level=logging.WARNING,
        )


def text_of(event: Event) -> str:
    """Return the sentence of an event, with all that it says of why."""
    said, note = sentence(event), str(event.context.get("note") or "")
    if event.name == "submit":
        jobs = ", ".join(event.context.get("jobs") or ())
        return cut(f"{said} for jobs {jobs}" if jobs else said)
    return cut(said if not note or note in said else f"{said}: {note}")
