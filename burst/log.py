# SPDX-License-Identifier: MIT
"""The daemon's log: one event, one line, for people or as JSON (RFC 18)."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.model.event import Event

_LOGGER = logging.getLogger("burst")


class _Lines(logging.Formatter):
    """Formats `2026-01-31T12:00:00 burst-0-3fa9c1 join ranks=4-7`, or RFC 18 lines."""

    def __init__(self, form: Literal["text", "json"]) -> None:
        super().__init__()
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        about = getattr(record, "about", "")
        if event is None:
            name = "log" if record.levelno < logging.WARNING else "warning"
            event = Event(record.created, name, {"text": record.getMessage()})
        if self._json:
            context = {"about": about, **event.context} if about else event.context
            line = Event(event.timestamp, event.name, context).line()
        else:
            line = _for_people(event, about)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _for_people(event: Event, about: str) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(event.timestamp))
    if set(event.context) == {"text"}:
        return f"{stamp} {_on_one_line(event.context['text'])}"
    details = " ".join(f"{key}={_word(value)}" for key, value in event.context.items())
    return " ".join(part for part in (stamp, about, event.name, details) if part)


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return msgspec.json.encode(value).decode()
    text = _on_one_line(value)
    return f'"{text}"' if " " in text else text


def _on_one_line(value: Any) -> str:
    """Return the text with control characters escaped: users may have written it."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def start(
    form: Literal["text", "json"],
    level: Literal["info", "warning"] = "info",
) -> None:
    """Send the log to standard error in this format. Called once, and on a reload."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(form))
    _LOGGER.handlers[:] = [handler]
    _LOGGER.propagate = False
    _LOGGER.setLevel(level.upper())


def event(entry: Event, about: str = "", *, level: int = logging.INFO) -> None:
    """Log an event of the burst, job or provider that `about` names."""
    _LOGGER.log(level, "", extra={"event": entry, "about": about})


def say(text: str, *args: object, level: int = logging.INFO) -> None:
    """Log a sentence."""
    _LOGGER.log(level, text, *args)


def warn(text: str, *args: object) -> None:
    """Log a sentence that a person has to know of."""
    _LOGGER.warning(text, *args)


def show_warning(message: Warning | str, *_: object, **_by_name: object) -> None:
    """Show a Python warning as one sentence: in the log, or else on standard error.

    It replaces `warnings.showwarning`, so that users do not see lines of code.
    """
    if not _LOGGER.handlers:
        sys.stderr.write(f"burst: {_on_one_line(message)}\n")
    else:
        warn("%s", message)


def failure(text: str, *args: object, error: BaseException | None = None) -> None:
    """Log an unexpected exception with its traceback.

    `error` is the exception; needed only if it is not being handled at the moment.
    """
    _LOGGER.warning(text, *args, exc_info=error or True)
