# SPDX-License-Identifier: MIT
"""Ctrl-C: the first ends the story, the next one hurries what comes after it."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A person wants the story to end; `signum` is how he said so."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Stop:
    """Notes signals while it is entered. In the main thread."""

    def __init__(self) -> None:
        self._signum = 0
        self._over = False

    def __enter__(self) -> Stop:
        self._before = {
            number: signal.signal(number, self._note) for number in _SIGNALS
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def hurried(self) -> bool:
        """Whether there was a signal after the story ended."""
        return self._over and bool(self._signum)

    def end_story(self) -> None:
        """Raise no more: what is being taken down is to be taken down."""
        self._over = True
        self._signum = 0

    def check(self) -> None:
        """Raise Interrupted if there was a signal."""
        if self._signum and not self._over:
            raise Interrupted(self._signum)

    def pause(self, seconds: float) -> None:
        """Wait, at most a moment. Raises Interrupted."""
        self.check()
        time.sleep(seconds)
        self.check()

    def _note(self, number: int, _: FrameType | None) -> None:
        self._signum = number
