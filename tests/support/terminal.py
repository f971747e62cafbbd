# SPDX-License-Identifier: MIT
"""A program on a terminal of its own, as a person has it: keys go in, text comes out.

with on_terminal(["burst", "watch"], {}) as screen:
    screen.shows("BURST")
    screen.press("q")
    assert screen.ended() == 0
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.waiting import HANG_S

# Makes the terminal that is its standard input the one that controls it, so that Ctrl-C
# there is SIGINT here.
_ENTER = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"


def _environment() -> dict[str, str]:
    """Return our environment without the size of our own terminal.

    Programs take what it says for the size of theirs. GNU readline, which pytest
    imports, sets it in each process that pytest starts, such as its workers.
    """
    ours = dict(os.environ)
    for name in ("COLUMNS", "LINES"):
        ours.pop(name, None)
    return ours


class TerminalScreen:
    """The other end of the terminal."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(80, 24)
        self.before = self.settings()
        self.text = ""
        """All that was printed, with what moves the cursor."""
        self._read = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ENTER, *argv],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**_environment(), "TERM": "xterm-256color", **environment},
        )

    def settings(self) -> list[Any]:
        """Return how the terminal is set, as tcgetattr does."""
        return termios.tcgetattr(self._theirs)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, size)

    def press(self, keys: str) -> int:
        """Press keys; return how much had been printed by then, for `shows`."""
        printed = len(self.text)
        os.write(self._ours, keys.encode(errors="surrogateescape"))
        return printed

    def shows(self, text: str, since: int = 0) -> None:
        """Wait until that is printed, after so many characters."""
        deadline = time.monotonic() + HANG_S
        while text not in self.text[since:]:
            assert time.monotonic() < deadline, f"{text!r} in {self.text[-3000:]!r}"
            self._take(0.2)

    def ended(self) -> int:
        """Return the exit status once it has ended, and all is read."""
        deadline = time.monotonic() + HANG_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text[-3000:]
            self._take(0.1)
        while self._take(0.1):
            pass
        return self.process.returncode

    def hang_up(self) -> None:
        """Take the terminal away, as who closes its window."""
        os.close(self._ours)
        self._ours = -1

    def close(self) -> None:
        """End it, if it has not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        if self._ours >= 0:
            self.hang_up()
        os.close(self._theirs)

    def _take(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        self._read += os.read(self._ours, 65536)
        self.text = self._read.decode("utf-8", "replace")
        return True


@contextmanager
def on_terminal(
    argv: Sequence[str], environment: Mapping[str, str]
) -> Iterator[TerminalScreen]:
    """Yield the screen of a program that was started on a new terminal."""
    screen = TerminalScreen(argv, environment)
    try:
        yield screen
    finally:
        screen.close()
