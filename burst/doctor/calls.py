# SPDX-License-Identifier: MIT
"""Calls that may fail in any way or hang, without ending the other checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from burst.doctor.facts import ReadFailure
from burst.errors import BurstError
from burst.model.fsd import format_fsd

_T = TypeVar("_T")


def try_call(call: Callable[[], _T]) -> _T | ReadFailure:
    """Return what the call returns, or a ReadFailure. Raises KeyboardInterrupt alone.

    SystemExit of a plug-in is a failure as any other.
    """
    try:
        return call()
    except BurstError as error:
        return ReadFailure(error.what, error.advice)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the other checks have to go on
        return ReadFailure(
            f"{type(error).__name__}: {error}",
            "this is a bug in burst or in a plug-in; please report it",
        )


class BackgroundCall(Generic[_T]):
    """A call on a thread of its own; it may hang for ever."""

    def __init__(self, call: Callable[[], _T], limit_s: float) -> None:
        """Begin the call, whose result is waited for until `limit_s` seconds later."""
        self._limit_s, self._ends = limit_s, time.monotonic() + limit_s
        self._found: list[_T | ReadFailure] = []
        # A daemon thread, so that a call that hangs does not keep the program alive.
        self._thread = threading.Thread(
            target=lambda: self._found.append(try_call(call)), daemon=True
        )
        self._thread.start()

    def result(self) -> _T | ReadFailure:
        """Return the result; a ReadFailure if it is not there in time."""
        self._thread.join(max(0.0, self._ends - time.monotonic()))
        if self._found:
            return self._found[0]
        return ReadFailure(f"there was no answer within {format_fsd(self._limit_s)}")
