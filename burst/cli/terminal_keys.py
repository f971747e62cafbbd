# SPDX-License-Identifier: MIT
"""Keys of a terminal, one by one, without Enter; see termios(3).

    with TerminalKeys(sys.stdin.fileno()) as keys:
        keys.read(0.2)        # ["up", "q"]

The terminal is as it was before after the block, however it ends. Ctrl-C raises
KeyboardInterrupt as before.
"""

from __future__ import annotations

import codecs
import os
import select
import termios
import tty
from types import TracebackType
from typing import Any

_SEQUENCES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
}
_NAMED = {"\t": "tab", "\r": "enter", "\n": "enter", "\x1b": "escape", " ": "page-down"}
_LONGEST = max(map(len, _SEQUENCES))
# Over ssh the bytes of one key may come in two parts, so far apart at most, in seconds.
_PART_S = 0.05


def split_keys(text: str) -> tuple[list[str], str]:
    """Return the keys that were pressed, and what may be the beginning of another."""
    keys = []
    while text:
        name = next((s for s in _SEQUENCES if text.startswith(s)), None)
        if name is not None:
            keys.append(_SEQUENCES[name])
            text = text[len(name) :]
        elif _begins(text):
            return keys, text
        elif text.startswith(("\x1b[", "\x1bO")):
            text = text[_unknown_length(text) :]
        else:
            keys.append(_NAMED.get(text[0], text[0]))
            text = text[1:]
    return keys, ""


def _begins(text: str) -> bool:
    """Tell whether more bytes may make a key of this."""
    return len(text) < _LONGEST and any(s.startswith(text) for s in _SEQUENCES)


def _unknown_length(text: str) -> int:
    """Return how long a sequence is that is none of ours (ECMA-48)."""
    for number, char in enumerate(text[2:], 3):
        if "@" <= char <= "~":
            return number
    return len(text)


class TerminalKeys:
    """Reads keys of a terminal. Raises OSError where it is gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> TerminalKeys:
        self._before = termios.tcgetattr(self._descriptor)
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, self._before)

    def read(self, seconds: float) -> list[str]:
        """Return what was pressed since the last call; waits so long for a key."""
        text, wait = "", seconds
        keys: list[str] = []
        while select.select([self._descriptor], [], [], wait)[0]:
            data = os.read(self._descriptor, 1024)
            if not data:
                raise OSError("the terminal is gone")
            text += self._decoder.decode(data)
            more, text = split_keys(text)
            keys += more
            if not text:
                break
            wait = _PART_S
        # Nothing came after it: it is the key Escape, or no key that we know.
        return [*keys, "escape"] if text == "\x1b" else keys
