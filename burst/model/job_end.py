# SPDX-License-Identifier: MIT
"""How a job ended, according to its events (RFC 21)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burst.model.event import Event

_FATAL = 0
_RESULTS = {"cancel": "canceled", "timeout": "timeout"}
BY_BURST = "burst"
"""The type of the exceptions that the daemon raises on jobs."""


class JobEnd(msgspec.Struct, frozen=True):
    """How a job ended."""

    result: str
    """completed, failed, canceled or timeout, as in `flux jobs`."""
    exception: str = ""
    """The type of its first fatal exception; empty if there was none."""
    note: str = ""
    """The note of that exception, or the exit status in words; empty for none."""

    def text(self, cause: str = "") -> str:
        """Return how the job ended, as a sentence without a full stop.

        `cause` is what took its nodes away. It comes first, as Flux only names what
        failed because of that, such as `flux_job_event_watch_get: Function not
        implemented`.
        """
        said = {"timeout": "ended at its time limit", "canceled": "was canceled"}
        text = f"it {said.get(self.result, self.result)}"
        if self.exception == BY_BURST:
            text = "burst made it fail"
        text = f"{text}: {self.note}" if self.note else text
        return f"{cause}; {text}" if cause else text


def end_of(events: Iterable[Event]) -> JobEnd | None:
    """Return how a job ended; None if it has not ended.

    Raises KeyError, TypeError or ValueError for events that RFC 21 does not allow.
    """
    ended, status = False, None
    kind = note = ""
    for event in events:
        if event.name == "clean":
            ended = True
        elif event.name == "finish":
            status = int(event.context["status"])
        elif is_fatal(event) and not kind:
            kind = str(event.context["type"])
            note = str(event.context.get("note", ""))
    if not ended:
        return None
    if kind:
        return JobEnd(_RESULTS.get(kind, "failed"), kind, note)
    return JobEnd("failed", "", _exit_of(status)) if status else JobEnd("completed")


def is_fatal(event: Event) -> bool:
    """Tell whether an event is an exception that ends the job. Raises KeyError."""
    return event.name == "exception" and event.context["severity"] == _FATAL


def _exit_of(status: int) -> str:
    """Return a wait status in words, wait(2)."""
    signal = status & 0x7F
    return f"ended by signal {signal}" if signal else f"exit status {status >> 8}"
