# SPDX-License-Identifier: MIT
"""How a job ended, by its events (RFC 21)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burst.model.event import Event

_FATAL = 0
_RESULTS = {"cancel": "canceled", "timeout": "timeout"}
BY_BURST = "burst"
"""Type of the exceptions that we raise."""


class JobEnd(msgspec.Struct, frozen=True):
    """How a job ended."""

    result: str
    """completed, failed, canceled or timeout, as `flux jobs` has it."""
    exception: str = ""
    """Type of its first fatal exception; empty if there was none."""
    note: str = ""
    """What that exception says."""

    def text(self, cause: str = "") -> str:
        """Return it as a sentence without a full stop.

        `cause` is what took its nodes away: it comes first, as Flux names what failed
        by that, such as `flux_job_event_watch_get: Function not implemented`.
        """
        said = {"timeout": "ended at its time limit", "canceled": "was canceled"}
        text = f"it {said.get(self.result, self.result)}"
        if self.exception == BY_BURST:
            text = "it was failed by burst"
        text = f"{text}: {self.note}" if self.note else text
        return f"{cause}; {text}" if cause else text


def end_of(events: Iterable[Event]) -> JobEnd | None:
    """Return how a job ended; None for one that has not.

    Raises KeyError, TypeError or ValueError for events that are not as RFC 21 has them.
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
    """Tell whether it is an exception that ends the job. Raises KeyError."""
    return event.name == "exception" and event.context["severity"] == _FATAL


def _exit_of(status: int) -> str:
    """Return a wait status in words, wait(2)."""
    signal = status & 0x7F
    return f"ended by signal {signal}" if signal else f"exit status {status >> 8}"
